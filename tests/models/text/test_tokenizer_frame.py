"""What a tokenizer puts round a text, beside what its folder states of that."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from lm_audit.models.checks.added_tokens import tell_words
from lm_audit.models.checks.tokenizer_frame import tell_frame


def framed(folder: Path, frame: str, **settings: Any) -> Any:
    """A tokenizer of bytes whose tokenizer.json has ``frame`` round ``$A``, and tokenizer_config.json ``settings``."""
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE(vocab={one: n for n, one in enumerate(["<b>", "<e>", *letters])}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.post_processor = processors.TemplateProcessing(single=frame, special_tokens=[("<b>", 0), ("<e>", 1)])
    backend.save(str(folder / "tokenizer.json"))
    config = {"bos_token": "<b>", "eos_token": "<e>", **settings}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    untyped: Any = PreTrainedTokenizerFast
    return untyped.from_pretrained(folder)


def told(tokenizer: Any, folder: Path) -> list[str]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        tell_frame(tokenizer, folder, "m")
        tell_words(tokenizer, "m")
    return [str(one.message) for one in heard]


@pytest.mark.parametrize(
    ("frame", "settings"),
    [("<b> $A", {}), ("<b> $A <e>", {"add_bos_token": True, "add_eos_token": True}), ("$A", {"add_bos_token": False})],
)
def test_a_frame_as_stated(tmp_path: Path, frame: str, settings: dict[str, Any]) -> None:
    assert told(framed(tmp_path, frame, **settings), tmp_path) == []


@pytest.mark.parametrize(
    ("frame", "settings", "says"),
    [
        (
            "<b> $A <e>",
            {"add_bos_token": False, "add_eos_token": True},
            "add_bos_token = false, and texts begin with '<b>'",
        ),
        ("<b> $A", {"add_eos_token": True}, "add_eos_token = true, and texts do not end in '<e>'"),
        ("$A <e>", {"add_eos_token": False}, "add_eos_token = false, and texts end in '<e>'"),
        ("<b> <b> $A", {}, "puts '<b>' more than once round every text"),
        ("$A <e> <e>", {}, "puts '<e>' more than once round every text"),
    ],
)
def test_another_frame_than_stated(tmp_path: Path, frame: str, settings: dict[str, Any], says: str) -> None:
    (message,) = told(framed(tmp_path, frame, **settings), tmp_path)

    assert says in message


def test_a_word_that_is_special_without_a_role(tmp_path: Path) -> None:
    """It is left out of all that the model writes, like one that ends a text."""
    tokenizer = framed(tmp_path, "<b> $A")
    tokenizer.backend_tokenizer.add_special_tokens(["yes"])
    tokenizer.backend_tokenizer.add_tokens(["no"])

    (message,) = told(tokenizer, tmp_path)
    assert "has 'yes' among its special tokens" in message and "'no'" not in message
    ids = tokenizer("yes no").input_ids
    assert "yes" not in tokenizer.decode(ids, skip_special_tokens=True)
