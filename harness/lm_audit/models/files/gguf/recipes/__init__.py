"""GGUF architectures that transformers has as models and converts no files of: how each file's model is written."""
