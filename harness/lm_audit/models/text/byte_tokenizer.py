"""A tokenizer whose tokens are bytes: pad 0, bos 1, eos 2, byte b is id b + 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lm_audit.models.text.tokenizer import Tokenizer

PAD, BOS, EOS = 0, 1, 2
FIRST_BYTE = 3
VOCABULARY = 256 + FIRST_BYTE

TOKEN_IDS: Mapping[str, Any] = {
    "vocab_size": VOCABULARY,
    "pad_token_id": PAD,
    "bos_token_id": BOS,
    "eos_token_id": EOS,
}
"""What the config of a model that reads these tokens says of them."""

_SPECIAL = ("<pad>", "<bos>", "<eos>")
_CHAT = (
    "{{ bos_token }}{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def byte_tokenizer(context: int) -> Tokenizer:
    """The tokenizer as ``transformers`` saves and loads it; it puts BOS before a text and nothing after it."""
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    names = dict(zip(_SPECIAL, (PAD, BOS, EOS), strict=True))
    backend = Backend(models.BPE(vocab=names | _byte_names(), merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A $B", special_tokens=[("<bos>", BOS)]
    )
    wrapper: Any = PreTrainedTokenizerFast
    made: Tokenizer = wrapper(
        tokenizer_object=backend,
        pad_token=_SPECIAL[PAD],
        bos_token=_SPECIAL[BOS],
        eos_token=_SPECIAL[EOS],
        chat_template=_CHAT,
        model_max_length=context,
        clean_up_tokenization_spaces=False,
    )
    return made


def _byte_names() -> dict[str, int]:
    """Byte-level BPE's names of the 256 bytes: printable Latin-1 stands for itself, the rest for U+0100 and up."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    names, spare = {}, 0x100
    for byte in range(256):
        code = byte if byte in printable else spare
        spare += byte not in printable
        names[chr(code)] = byte + FIRST_BYTE
    return names
