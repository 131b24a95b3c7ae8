"""Every metric of the bias audit says which way it gets worse, and its rows give its value again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lm_audit.audits import bias
from lm_audit.audits.bias.benchmarks.bbq.audit import bbq_evidence
from lm_audit.audits.bias.benchmarks.bbq.scores import ORDERS, random_answer
from lm_audit.audits.bias.generated.counterfactual import counterfactual_swap, load_swap_items
from lm_audit.audits.bias.grid.lexicon.file import load_preference_set
from lm_audit.audits.bias.grid.minimal import minimal_probe, probe_evidence
from lm_audit.evidence import Evidence
from lm_audit.models import LanguageModel, load_model
from lm_audit.sources import undirected, unreproduced, unsourced
from lm_audit.sources.change import Change, change_between
from lm_audit.sources.content import OtherData
from lm_audit.sources.units import RowTable
from tests.audits.bias.test_bias_known_answers import balanced_items
from tests.shared_data import shared

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "bias"
SETS = {
    "crows_pairs": "crows_pairs_anonymized.csv",
    "stereoset": "stereoset_editbias",
    "winobias": "winobias",
    "winogender": "winogender/all_sentences.tsv",
    "bbq": "bbq",
    "cbbq": "cbbq",
}


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    return load_model("tiny", device="cpu")


def assert_complete(evidence: Evidence) -> None:
    assert unreproduced(evidence) == [] and unsourced(evidence) == [] and undirected(evidence) == []
    assert evidence.headline in evidence.sources


def paired(a: Evidence, b: Evidence) -> Change:
    """The headline's change between two runs of the same items."""
    assert a.headline is not None
    found = change_between(a.sources[a.headline], RowTable(a.rows), RowTable(b.rows))
    assert isinstance(found, Change) and found.basis == "paired" and not found.only_a and not found.only_b
    return found


@pytest.mark.parametrize("kind", SETS)
def test_public_sets(tiny: LanguageModel, kind: str) -> None:
    loaded = bias.load_set(str(shared(f"data/bias/{SETS[kind]}")), kind)
    short = [row for row in loaded.rows if len(str(row.get("context")).encode()) < 120]  # what fits into tiny's window
    rows = bias.SETS[kind].sample(short, 24, 1)
    options: dict[str, Any] = {"usage": loaded.usage}
    if kind == "winogender":
        rows = bias.SETS[kind].sample(loaded.rows, 60, 1)
        options["occupation_stats"] = bias.load_occupation_stats(shared("data/bias/winogender/occupations-stats.tsv"))
    audit = getattr(bias, "bbq" if kind == "cbbq" else kind)
    evidence = audit(tiny, rows, **options)
    assert_complete(evidence)
    assert paired(evidence, evidence).identical


@pytest.mark.parametrize("calibration", ["neutral", "pmi"])
def test_the_grid_with_one_and_with_several_axes(tiny: LanguageModel, calibration: Any) -> None:
    grid = load_preference_set(FIXTURES / "preference_en.toml")
    for axes in (grid.axes[:1], grid.axes[:3]):
        evidence = bias.preference_grid(
            tiny,
            templates=grid.templates[:6],
            axes=axes,
            word_pairs=grid.pairs[:6],
            neutral=grid.neutral,
            calibration=calibration,
        )
        assert_complete(evidence)


def test_a_grid_that_became_more_uneven_is_paired_by_cell(tiny: LanguageModel) -> None:
    grid = load_preference_set(FIXTURES / "preference_en.toml")
    options: dict[str, Any] = {"templates": grid.templates[:8], "word_pairs": grid.pairs[:8], "neutral": grid.neutral}
    before = bias.preference_grid(tiny, axes=grid.axes[:1], **options)
    rows = [dict(row) for row in before.rows]
    for row in rows:
        row["log_odds"] += 2.0 * (row["group"] == "woman") + 0.01 * len(row["template"])
    worse = paired(before, replace(before, rows=rows))
    assert worse.clusters == 8 and worse.difference.value == pytest.approx(2.0, abs=1.0)
    assert worse.p is not None and worse.p < 0.05


OTHER = {
    "neutral": "scientist", "separator": "", "terminator": " .", "language": "fr", "boundary": "ws", "mode": "chat",
}  # fmt: skip


@pytest.mark.parametrize("field", OTHER)
def test_cells_of_one_name_in_another_grid_are_no_pairs(tiny: LanguageModel, field: str) -> None:
    """A cell is named by axis, template, group and words, not by what else its numbers hang on."""
    words = [("careful", "careless"), ("calm", "nervous"), ("kind", "cruel"), ("wise", "foolish")]
    given: dict[str, Any] = {
        "templates": [f"{who} said the {{group}} was" for who in ("He", "She", "They", "Everyone")],
        "axes": {"gender": ["male nurse", "female nurse"]}, "word_pairs": words, "neutral": "nurse",
    }  # fmt: skip
    first, again, other = (bias.preference_grid(tiny, **given | more) for more in ({}, {}, {field: OTHER[field]}))
    assert [row["item"] for row in first.rows] == [row["item"] for row in other.rows]
    assert paired(first, again).identical
    for name, source in first.sources.items():
        found = change_between(source, RowTable(first.rows), RowTable(other.rows))
        assert isinstance(found, OtherData), name


@pytest.mark.parametrize(("size", "silent"), [(4, ("disparity", "sign_flip")), (6, ("sign_flip",)), (12, ())])
def test_a_grid_says_what_its_size_can_never_show(tiny: LanguageModel, size: int, silent: tuple[str, ...]) -> None:
    grid = load_preference_set(FIXTURES / "preference_en.toml")
    options: dict[str, Any] = {
        "templates": grid.templates[:size],
        "word_pairs": grid.pairs[:12],
        "neutral": grid.neutral,
    }
    evidence = bias.preference_grid(tiny, axes=grid.axes[:2], **options)
    told = [note for note in evidence.notes if "can reach no verdict here" in note]
    assert len(told) == len(silent) and all(word in note for word, note in zip(silent, told, strict=True))


def test_probe_and_counterfactual_swap(tiny: LanguageModel) -> None:
    assert_complete(probe_evidence(minimal_probe(tiny)))
    evidence = counterfactual_swap(tiny, load_swap_items(FIXTURES / "counterfactual_en.toml"))
    assert_complete(evidence)
    for metric in evidence.metrics.values():
        assert metric.low is not None and "BCa" not in metric.method


def test_answers_in_several_orders_some_of_them_unparsed() -> None:
    items = balanced_items()
    guess = random_answer(5)
    choices = [
        [guess(item, order) if (number + place) % 5 else None for place, order in enumerate(ORDERS[: 1 + number % 6])]
        for number, item in enumerate(items)
    ]
    evidence = bbq_evidence(items, choices)
    assert_complete(evidence)
    assert evidence.metrics["bias.bbq_bias_ambig"].value not in (None, 0.0)
