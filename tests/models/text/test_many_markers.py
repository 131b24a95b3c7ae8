"""Replies made to take time: markers and marks by the ten thousand are read once each, not once for each other."""

from __future__ import annotations

import pytest

from lm_audit.models.text.quotation import quotations
from lm_audit.models.text.thinking import split_reply

MANY = 8_000


@pytest.mark.parametrize(
    ("unit", "answer"),
    [
        ("</think>", "7"),
        ("x </think>\n", "7"),
        ("<think>a</think>", "7"),
        ('" a </think> ', "7"),
        ("“<think>” ", None),
        ("<pre> </think> ", "7"),
    ],
)
def test_a_reply_of_nothing_but_markers_is_split(unit: str, answer: str | None) -> None:
    reply = split_reply(unit * MANY + "7")
    assert reply.answer == (unit * MANY + "7" if answer is None else answer)


@pytest.mark.parametrize("opening", ["“", "«", "「", "<pre>", "<code x>", "„", "`" * 5])
def test_marks_that_nothing_closes_quote_nothing(opening: str) -> None:
    assert list(quotations(f"{opening} " * MANY)) == [] or opening.startswith("`")
    assert list(quotations(opening * (5 * MANY) + "a")) == []


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("say “a“ b” now", ["“ b”"]),
        ("«a «b» c»", ["«b»"]),
        ("see <pre>a<code>b</code></pre>", ["<pre>a<code>b</code></pre>"]),
        ("``a ` b`` c `d`", ["``a ` b``", "`d`"]),
        ("```a", []),
    ],
)
def test_a_quotation_is_from_the_nearest_mark_that_opens(text: str, quoted: list[str]) -> None:
    assert [text[first:last] for first, last in quotations(text)] == quoted
