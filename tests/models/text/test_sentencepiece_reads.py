"""Tokenizers made of a SentencePiece model alone, held to that library's own reading of the file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from lm_audit.models.checks.sentencepiece_reads import sentencepiece_file
from lm_audit.models.checks.tokenizer_frame import tell_frame
from lm_audit.models.checks.tokenizer_reads import tell_class

_PROSE = "One text has a number of words, and another text has none. It's 12 of 345: DON'T box a cat.\n" * 4
_FILES = {"T5Tokenizer": "spiece.model", "CamembertTokenizer": "sentencepiece.bpe.model"}


def trained(folder: Path, name: str = "tokenizer.model", **settings: Any) -> None:
    from sentencepiece import SentencePieceTrainer

    prose = folder / "prose.txt"
    prose.write_text(_PROSE)
    settings = {"vocab_size": 330 if settings.get("byte_fallback") else 60, "hard_vocab_limit": False, **settings}
    SentencePieceTrainer.train(input=str(prose), model_prefix=str(folder / "m"), minloglevel=2, **settings)
    (folder / "m.model").rename(folder / name)
    prose.unlink()


def told(folder: Path, name: str) -> list[str]:
    """What is told of the class ``name`` made of the file in ``folder``."""
    import transformers

    tokenizer = getattr(transformers, name).from_pretrained(folder)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        tell_class(tokenizer, folder, "m")
        tell_frame(tokenizer, folder, "m")
    return [str(one.message) for one in heard]


_AS_IS = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("LlamaTokenizer", {"model_type": "unigram"}),
        ("LlamaTokenizer", {"model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "nmt_nfkc_cf"}),
        ("CodeLlamaTokenizer", {"model_type": "bpe", "byte_fallback": True, **_AS_IS, "add_dummy_prefix": False}),
        ("T5Tokenizer", {"model_type": "unigram", "unk_id": 0}),  # its own id of <unk> is 2, here the end
    ],
)
def test_pieces_that_are_not_those_of_the_file(tmp_path: Path, name: str, settings: dict[str, Any]) -> None:
    file = _FILES.get(name, "tokenizer.model")
    trained(tmp_path, file, **settings)

    assert any(
        f"{file} reads " in one and f"; {name}, which transformers makes of it" in one for one in told(tmp_path, name)
    )


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("GemmaTokenizer", {"model_type": "bpe", "byte_fallback": True, **_AS_IS, "add_dummy_prefix": False}),
        ("CamembertTokenizer", {"model_type": "unigram"}),  # its numbers are four further on
    ],
)
def test_pieces_of_the_file(tmp_path: Path, name: str, settings: dict[str, Any]) -> None:
    trained(tmp_path, _FILES.get(name, "tokenizer.model"), **settings)
    (tmp_path / "tokenizer_config.json").write_text('{"add_bos_token": true}')

    assert told(tmp_path, name) == []


def test_a_bos_of_which_nothing_is_stated(tmp_path: Path) -> None:
    trained(tmp_path, model_type="bpe", byte_fallback=True, **_AS_IS, add_dummy_prefix=False)

    (message,) = told(tmp_path, "GemmaTokenizer")
    assert "states no add_bos_token: texts are read without '<bos>' before them" in message
    (tmp_path / "tokenizer_config.json").write_text('{"add_bos_token": false}')
    assert told(tmp_path, "GemmaTokenizer") == []


def test_which_file_is_held_against_the_class(tmp_path: Path) -> None:
    """One SentencePiece model, and only where no tokenizer.json is read; a file of another kind says nothing."""
    (tmp_path / "tokenizer.model").write_bytes(b"IQ== 0\nIg== 1\n")  # tiktoken's form
    assert sentencepiece_file(tmp_path) == tmp_path / "tokenizer.model"
    (tmp_path / "other.model").write_bytes(b"")
    assert sentencepiece_file(tmp_path) is None
    (tmp_path / "other.model").unlink()
    (tmp_path / "tokenizer.json").write_text("{}")
    assert sentencepiece_file(tmp_path) is None
