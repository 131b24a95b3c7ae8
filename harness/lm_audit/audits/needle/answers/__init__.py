"""Answers to samples, their scores, and the evidence made of them."""
