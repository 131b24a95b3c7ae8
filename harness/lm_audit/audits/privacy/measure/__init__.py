"""What is measured on one stage: membership, extraction, exposure."""
