"""Small real tokenizers of the three kinds, trained here: byte-level BPE, SentencePiece, tiktoken's pattern."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from lm_audit.audits.needle.haystack.sources import NOISE, embedded_essay

# The pattern of GPT-4's tokenizer (tiktoken's cl100k_base).
GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
CHINESE = (
    "学而时习之，不亦说乎？有朋自远方来，不亦乐乎？人不知而不愠，不亦君子乎？"
    "吾日三省吾身：为人谋而不忠乎？与朋友交而不信乎？传不习乎？"
)
KINDS = ("byte-level", "sentencepiece", "tiktoken")
TRAINING = [*(embedded_essay().text[at : at + 400] for at in range(0, 60_000, 400)), NOISE, CHINESE]


@cache
def small_tokenizer(kind: str, *, chat: bool = False) -> Any:
    """The tokenizer of this kind as ``transformers`` has it; SentencePiece's puts a BOS before a text."""
    from transformers import PreTrainedTokenizerFast

    backend = _sentencepiece() if kind == "sentencepiece" else _byte_level(GPT4 if kind == "tiktoken" else None)
    wrapper: Any = PreTrainedTokenizerFast
    template = (
        "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}]\n{{ m['content'] | trim }}</s>\n{% endfor %}"
        "{% if add_generation_prompt %}[assistant]\n{% endif %}"
    )
    return wrapper(
        tokenizer_object=backend,
        bos_token="<s>",
        eos_token="</s>",
        chat_template=template if chat else None,
        clean_up_tokenization_spaces=False,
    )


def _byte_level(pattern: str | None) -> Any:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    if pattern is None:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(pattern), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1500,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TRAINING, trainer)
    return tokenizer


def _sentencepiece() -> Any:
    """A unigram model trained by sentencepiece, in the form that ``transformers`` gives T5's and Llama's."""
    import sentencepiece
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder) / "small"
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(TRAINING),
            model_prefix=str(prefix),
            vocab_size=1200,
            byte_fallback=True,
            character_coverage=1.0,
            num_threads=1,
            minloglevel=2,
        )
        trained = sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")
    pieces = [(trained.id_to_piece(i), trained.get_score(i)) for i in range(trained.get_piece_size())]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=trained.unk_id(), byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", trained.bos_id())]
    )
    return tokenizer
