"""Tokenizers made of a SentencePiece model alone, held to that library's own reading of the file."""

from __future__ import annotations

import json
import warnings
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from lm_audit.models.checks.sentencepiece_reads import made_of_pieces, read_otherwise, sentencepiece_file
from lm_audit.models.checks.tokenizer_frame import tell_frame
from lm_audit.models.checks.tokenizer_reads import tell_class
from lm_audit.models.files.weight_files import has_tokenizer
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from tests.models.scoring.small_models import small_tokenizer

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


_AS_IS: dict[str, Any] = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}


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
    """One SentencePiece model; a file of another kind says nothing."""
    (tmp_path / "tokenizer.model").write_bytes(b"IQ== 0\nIg== 1\n")  # tiktoken's form
    assert sentencepiece_file(tmp_path) == tmp_path / "tokenizer.model" and made_of_pieces(tmp_path)
    assert read_otherwise(small_tokenizer(), tmp_path / "tokenizer.model", ["text"]) == ""
    (tmp_path / "other.model").write_bytes(b"")
    assert sentencepiece_file(tmp_path) is None and not made_of_pieces(tmp_path)
    (tmp_path / "tekken.json").write_text("{}")
    assert made_of_pieces(tmp_path) and has_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    assert not made_of_pieces(tmp_path)


def test_a_file_of_another_tokenizer_beside_the_one_that_is_read(tmp_path: Path) -> None:
    """As where a vocabulary was enlarged in one of two files alone."""
    trained(tmp_path, model_type="unigram", vocab_size=60)
    tokenizer: Any = small_tokenizer()
    tokenizer.backend_tokenizer.save(str(tmp_path / "tokenizer.json"))

    with pytest.warns(UserWarning, match=r"tokenizer\.model is another tokenizer's than the tokenizer\.json beside it"):
        tell_class(tokenizer, tmp_path, "m")


def test_a_file_beside_what_was_made_of_it(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    from transformers import T5Tokenizer

    trained(tmp_path, "spiece.model", model_type="unigram", vocab_size=60, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    untyped: Any = T5Tokenizer
    untyped.from_pretrained(tmp_path).save_pretrained(tmp_path)
    tell_class(untyped.from_pretrained(tmp_path), tmp_path, "m")

    assert (tmp_path / "tokenizer.json").exists() and not recwarn.list


@pytest.mark.parametrize("ids", ["same", "moved", "damaged"])
def test_mistrals_file_beside_a_tokenizer(tmp_path: Path, recwarn: pytest.WarningsRecorder, ids: str) -> None:
    tokenizer: Any = byte_tokenizer(64)
    tokenizer.backend_tokenizer.save(str(tmp_path / "tokenizer.json"))
    order = range(256) if ids == "same" else reversed(range(256))
    vocab = [{"rank": i, "token_bytes": b64encode(bytes([byte])).decode()} for i, byte in enumerate(order)]
    content = {"config": {"default_vocab_size": 259, "default_num_special_tokens": 3}, "vocab": vocab}
    (tmp_path / "tekken.json").write_text("[" if ids == "damaged" else json.dumps(content))
    tell_class(tokenizer, tmp_path, "m")

    says = [str(one.message) for one in recwarn.list]
    assert len(says) == (ids == "moved")
    assert all("tekken.json is another tokenizer's" in one and "numbers 256 of its 256" in one for one in says)
