"""Between text and token ids: tokenizers, prompts, chat templates, and where a thought ends."""
