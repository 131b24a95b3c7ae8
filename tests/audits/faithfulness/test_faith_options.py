"""Options of the faithfulness audit: what cannot be used is refused by its parser, before anything is read."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from lm_audit.audits.faithfulness.options import OPTIONS

TYPES = {option.flag: option.type for option in OPTIONS}


@pytest.mark.parametrize("flag", ["--deletion-steps", "--attribution-hops"])
@pytest.mark.parametrize("text", ["-1", "nan", "1.5", "", "many"])
def test_numbers_that_cannot_be_used(flag: str, text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"{text!r} is not a whole number from 0 to "):
        TYPES[flag](text)


@pytest.mark.parametrize("flag", ["--deletion-steps", "--attribution-hops"])
def test_zero_is_a_number(flag: str) -> None:
    assert (TYPES[flag]("0"), TYPES[flag]("7")) == (0, 7)


def test_an_empty_file_name_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="empty"):
        TYPES["--faithfulness-samples"]("  ")
