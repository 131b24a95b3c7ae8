"""Rows of public bias sets with any value in any field: used, excluded by name, or refused with the file; none lost."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_audit.audits.bias.benchmarks.public_sets import SETS, load_set
from lm_audit.errors import DataError, DataWarning

SENTENCES = [
    {"sentence": f"He was {word}.", "gold_label": label}
    for word, label in (("loud", "stereotype"), ("quiet", "anti-stereotype"), ("rain", "unrelated"))
]
ROWS: dict[str, dict[str, Any]] = {
    "crows_pairs": {"sent_more": "Old {}", "sent_less": "New {}", "stereo_antistereo": "stereo", "bias_type": "age"},
    "stereoset": {
        "target": "player",
        "bias_type": "job",
        "context": "The player {} came.",
        "sentences": SENTENCES,
        "task": "intersentence",
    },
    "winobias": {"sentence": "[The developer] met the designer {} as [he] left.", "condition": "pro", "type": 1},
    "winogender": {"sentid": "cook.guest.0.male.txt", "sentence": "The cook told the guest that he is {}."},
    "bbq": {
        "category": "Age",
        "question_index": "1",
        "question_polarity": "neg",
        "context_condition": "disambig",
        "context": "Two people met, {}.",
        "question": "Who was slow?",
        "ans0": "The old man",
        "ans1": "The young man",
        "ans2": "Unknown",
        "answer_info": {"ans0": ["old man", "old"], "ans1": ["young man", "nonOld"], "ans2": ["Unknown", "unknown"]},
        "additional_metadata": {"stereotyped_groups": ["old"]},
        "label": 0,
    },
}
simple = st.none() | st.booleans() | st.integers(-3, 5) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    simple
    | st.text(max_size=6)
    | st.sampled_from(["neg", "anti", "antistereo", "ans1", "1.0", "unknown", "the", "\u200b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["ans0", "x", "sentence"]), inner),
    max_leaves=5,
)


def filled(kind: str, number: int) -> dict[str, Any]:
    """A sound row of its own."""
    text = json.dumps(ROWS[kind]).replace("{}", str(number))
    row: dict[str, Any] = json.loads(text)
    return row


@pytest.mark.parametrize("kind", ROWS)
@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_every_row_is_used_excluded_or_refused_by_name(kind: str, data: st.DataObject) -> None:
    rows = [filled(kind, number) for number in range(6)]
    changed = data.draw(st.lists(st.sampled_from(sorted(ROWS[kind])), min_size=1, max_size=3))
    odd = filled(kind, data.draw(st.integers(0, 9))) | {name: data.draw(values) for name in changed}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        path = Path(folder) / "set.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, odd]), encoding="utf-8")
        try:
            loaded = load_set(str(path), kind)
        except DataError as error:
            assert "set.jsonl" in str(error) and error.row == 7
            return
    usage = loaded.usage
    assert usage.n_read + usage.repeats == 7
    assert len(loaded.rows) == usage.n_read - usage.n_excluded >= 6 - usage.repeats
    assert all(gap.row == 7 and gap.reason for gap in usage.exclusions)


@pytest.mark.parametrize("kind", ROWS)
def test_sound_rows_are_used_whole(kind: str) -> None:
    rows = [filled(kind, number) | {"_file": "set", "_row": number + 1} for number in range(6)]
    items, excluded = SETS[kind].parse(rows)
    assert (len(items), excluded) == (6, [])
