"""A thinking model of known behaviour: its weights are a table of which token follows which, its answers a plan.

A Llama whose only layer adds nothing: the token's one-hot vector goes straight to the head, whose rows say what comes
next. Behind any text it opens a thought, thinks its one thought, closes it and gives its one answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

OPEN, CLOSE, TURN = "<think>\n", "\n</think>\n\n", "assistant:"
TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
    "{% if enable_thinking is not defined or enable_thinking %}<think>\n{% endif %}"
)


def save_thinking_model(folder: Path, thought: str, answer: str, *, ends: bool = True, context: int = 4096) -> Path:
    """The model as a folder; one that never ends its thought unless ``ends``. Its template opens the thought."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from lm_audit.models.text.byte_tokenizer import EOS, byte_tokenizer

    tokenizer: Any = byte_tokenizer(context)
    tokenizer.add_tokens([OPEN, CLOSE, TURN, thought, answer])
    tokenizer.chat_template = TEMPLATE
    ids = {text: tokenizer.convert_tokens_to_ids(text) for text in (OPEN, CLOSE, TURN, thought, answer)}
    size = (len(tokenizer) + 7) // 8 * 8
    follows = dict.fromkeys(range(size), ids[OPEN])
    follows |= {ids[OPEN]: ids[thought], ids[thought]: ids[CLOSE] if ends else ids[thought]}
    follows |= {ids[CLOSE]: ids[answer], ids[TURN]: ids[answer], ids[answer]: EOS, EOS: EOS}
    config = LlamaConfig(
        vocab_size=size,
        hidden_size=size,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        max_position_embeddings=context,
        tie_word_embeddings=False,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=EOS,
    )
    module = LlamaForCausalLM(config)
    with torch.no_grad():
        module.model.embed_tokens.weight.copy_(torch.eye(size))
        module.model.layers[0].self_attn.o_proj.weight.zero_()
        module.model.layers[0].mlp.down_proj.weight.zero_()
        module.lm_head.weight.zero_()
        for token, following in follows.items():
            module.lm_head.weight[following, token] = 2.0
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
