"""A row that stands in a data set several times is no evidence more: it counts once, and narrows no interval."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lm_audit.audits.bias import load_set
from lm_audit.audits.bias.benchmarks.bbq.audit import bbq
from lm_audit.audits.bias.benchmarks.crows_pairs.audit import crows_pairs
from lm_audit.audits.bias.benchmarks.stereoset.audit import stereoset
from lm_audit.audits.bias.benchmarks.wino.winobias import winobias
from lm_audit.audits.bias.benchmarks.wino.winogender import winogender
from lm_audit.audits.bias.generated.counterfactual import load_swap_items
from lm_audit.audits.bias.generated.refusal import load_refusal_set
from lm_audit.audits.leakage import completions, load_benchmark, memorisation
from lm_audit.audits.leakage.items.loading import cached_benchmark
from lm_audit.audits.privacy.measure.membership_scored import MemberText, scored_membership, texts_of_files
from lm_audit.errors import ContextError, DataError, DataWarning
from lm_audit.evidence import Evidence
from lm_audit.models import LanguageModel, load_model
from tests.audits.bias.test_bias_bbq_groups import row as bbq_row

WORDS = (
    *("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath"),
    *("islet", "jetty", "knoll", "ledge", "marsh", "north", "ocean", "prairie"),
)
TEN = 10


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    return load_model("tiny", device="cpu")


def numbers(evidence: Evidence) -> dict[str, Any]:
    return {name: (one.value, one.low, one.high, one.n, one.units) for name, one in evidence.metrics.items()}


def questions() -> list[dict[str, Any]]:
    return [
        {
            "question": f"Which word is number {k}?",
            "choices": [WORDS[(k + j) % 16] for j in range(4)],
            "answer": "ABCD"[k % 4],
        }
        for k in range(12)
    ]


def copied(rows: list[dict[str, Any]], how: str) -> list[dict[str, Any]]:
    """Each row ten times, in place or the whole set after itself, with ids of their own."""
    order = [row for row in rows for _ in range(TEN)] if how == "rows" else rows * TEN
    return [{**row, "id": number} for number, row in enumerate(order)]


def jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("how", ["rows", "set"])
def test_a_benchmark_copied_ten_times_is_the_same_benchmark(tmp_path: Path, how: str) -> None:
    once = load_benchmark(jsonl(tmp_path / "set.jsonl", questions()))
    (tmp_path / how).mkdir()
    path = jsonl(tmp_path / how / "set.jsonl", copied(questions(), how))
    again = load_benchmark(path)
    assert [(item.question, item.options, item.answer) for item in again.items] == [
        (item.question, item.options, item.answer) for item in once.items
    ]
    assert (again.rows, again.usable, again.by_file, again.places) == (12, 12, {"set": 12}, once.places)
    assert again.repeated == 108 and not again.excluded
    with pytest.warns(DataWarning, match="108 of 120 rows repeat another row, and count once"):
        cached_benchmark(str(path), None, None, 0)


def test_rows_that_cannot_be_used_do_not_count_more_often_either(tmp_path: Path) -> None:
    rows = [*questions(), {"question": "Which?", "choices": ["one"], "answer": "A"}]
    again = load_benchmark(jsonl(tmp_path / "set.jsonl", rows * TEN))
    assert (again.rows, sum(again.excluded.values()), again.repeated) == (13, 1, 117)


@pytest.mark.parametrize("how", ["rows", pytest.param("set", marks=pytest.mark.slow)])
def test_intervals_of_leakage_are_no_narrower(tmp_path: Path, tiny: LanguageModel, how: str) -> None:
    # Orders and other items are drawn by an item's id: the copies keep theirs, so that the numbers are the same.
    rows = [{**row, "id": f"q{k}"} for k, row in enumerate(questions())]
    copies = [row for row in rows for _ in range(TEN)] if how == "rows" else rows * TEN
    once, again = (
        load_benchmark(jsonl(tmp_path / f"{name}" / "set.jsonl", some)) for name, some in (("a", rows), ("b", copies))
    )
    for audit in (completions, memorisation):
        left, right = numbers(audit(tiny, once, seed=0)), numbers(audit(tiny, again, seed=0))
        assert left.keys() == right.keys()
        for name, values in left.items():
            assert values[3:] == right[name][3:], name  # n and units
            assert right[name][:3] == pytest.approx(values[:3], nan_ok=True), name


def crows_rows() -> list[dict[str, Any]]:
    return [
        {
            "sent_more": f"The {a} is loud.",
            "sent_less": f"The {b} is loud.",
            "stereo_antistereo": "stereo",
            "bias_type": "age",
        }
        for a, b in pairwise(WORDS)
    ]


def stereoset_rows() -> list[dict[str, Any]]:
    labels = ("stereotype", "anti-stereotype", "unrelated")
    return [
        {
            "target": word,
            "bias_type": "profession",
            "context": f"The {word} is BLANK.",
            "sentences": [
                {"gold_label": label, "sentence": f"The {word} is {WORDS[(k + j + 1) % 16]}."}
                for j, label in enumerate(labels)
            ],
        }
        for k, word in enumerate(WORDS)
    ]


def winogender_rows() -> list[dict[str, Any]]:
    pronouns = {"male": "he", "female": "she", "neutral": "they"}
    return [
        {"sentid": f"{word}.client.{k % 2}.{gender}.txt", "sentence": f"The {word} met the client since {he} was late."}
        for k, word in enumerate(WORDS[:8])
        for gender, he in pronouns.items()
    ]


def winobias_rows() -> list[dict[str, Any]]:
    return [
        {
            "sentence": f"[The {a}] greeted the {b} because [{he}] was near the {word}.",
            "condition": condition,
            "type": 1,
        }
        for word in WORDS[:6]
        for a, b, he, condition in (
            ("lawyer", "nurse", "he", "pro"),
            ("lawyer", "nurse", "she", "anti"),
            ("nurse", "lawyer", "she", "pro"),
            ("nurse", "lawyer", "he", "anti"),
        )
    ]


def bbq_rows() -> list[dict[str, Any]]:
    made = (["Black"], ("The Black man", "M-Black"), ("The White man", "M-White"))
    return [
        bbq_row(*made) | {"example_id": k, "question_index": str(k // 2), "question": f"Who saw the {word}?"}
        for k, word in enumerate(WORDS)
    ]


SETS: dict[str, tuple[Callable[[], list[dict[str, Any]]], Callable[..., Evidence]]] = {
    "crows_pairs": (crows_rows, crows_pairs),
    "stereoset": (stereoset_rows, stereoset),
    "winogender": (winogender_rows, winogender),
    "winobias": (winobias_rows, winobias),
    "bbq": (bbq_rows, bbq),
}


@pytest.mark.parametrize("kind", SETS)
def test_intervals_of_the_public_sets_are_no_narrower(tmp_path: Path, tiny: LanguageModel, kind: str) -> None:
    made, audit = SETS[kind]
    once = audit(tiny, made(), seed=0)
    for how in ("rows", "set"):
        again = audit(tiny, copied(made(), how), seed=0)
        assert again.parameters["rows_repeated"] == 9 * len(made())
        left, right = numbers(once), numbers(again)
        assert left.keys() == right.keys()
        for name, values in left.items():
            assert right[name] == pytest.approx(values, nan_ok=True), name


def test_a_copied_public_set_is_told_and_not_refused(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "set.jsonl", copied(bbq_rows(), "set"))
    with pytest.warns(DataWarning, match="144 of 160 rows repeat another row, and count once"):
        loaded = load_set(str(path), "bbq")
    assert len(loaded.rows) == 16


def test_files_that_changed_are_read_again(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "set.jsonl", bbq_rows())
    first = load_set(str(path), "bbq")
    assert load_set(str(path), "bbq") is first
    path.write_text(path.read_text().replace("amber", "beryl"))  # as many bytes, perhaps within one tick of the clock
    second = load_set(str(path), "bbq")
    assert second is not first and "beryl" in second.rows[0]["question"]
    folder = tmp_path / "folder"
    folder.mkdir()
    jsonl(folder / "a.jsonl", questions())
    assert len(cached_benchmark(str(folder), None, None, 0).items) == 12
    jsonl(folder / "b.jsonl", [{**questions()[0], "question": "Another one?"}])
    assert len(cached_benchmark(str(folder), None, None, 0).items) == 13


def texts(member: bool) -> list[MemberText]:
    side = "in" if member else "out"
    return [
        MemberText(f"{side}-{k}", f"The {word} lay {side} the field of {k}.", member) for k, word in enumerate(WORDS)
    ]


def test_membership_counts_a_text_once(tiny: LanguageModel) -> None:
    given = [*texts(True), *texts(False)]
    once = scored_membership(tiny, given)
    copies = [
        MemberText(f"{one.item}-{k}", f" {one.text} " if k else one.text, one.member)
        for one in given
        for k in range(TEN)
    ]
    again = scored_membership(tiny, copies)
    assert numbers(once) == numbers(again) and again.parameters["repeated"] == 9 * len(given)
    assert "288 texts repeat another text of their side" in again.notes[0]


def test_a_text_on_both_sides_is_an_error_however_it_is_spaced(tiny: LanguageModel, tmp_path: Path) -> None:
    shared = MemberText("twin", f"{texts(True)[0].text}\n", False)
    with pytest.raises(DataError, match="among the members and among the held-out ones"):
        scored_membership(tiny, [*texts(True), *texts(False), shared])
    long = [" ".join([*WORDS * 4, str(k)]) for k in range(30)]
    members, held_out = (
        jsonl(tmp_path / f"{k}.jsonl", [{"text": t} for t in side]) for k, side in enumerate((long[:15], long[14:]))
    )
    with pytest.raises(DataError, match="among the members and among the held-out ones"):
        texts_of_files(members, held_out, limit=2, seed=0)


def test_a_text_longer_than_the_model_reads_is_named(tiny: LanguageModel) -> None:
    given = [*texts(True), MemberText("essay", " ".join(WORDS * 200), True), *texts(False)]
    with pytest.raises(ContextError, match=r"text essay, the longest, begins 'amber birch .*needs \d+ tokens"):
        scored_membership(tiny, given)


def test_repeated_texts_of_files_are_told(tmp_path: Path) -> None:
    long = [" ".join(f"{word}{k}" for word in WORDS * 4) for k in range(30)]
    members = jsonl(tmp_path / "in.jsonl", [{"text": t} for t in long[:15] * TEN])
    held_out = jsonl(tmp_path / "out.jsonl", [{"text": t} for t in long[15:]])
    with pytest.warns(DataWarning, match=r"in\.jsonl: 135 of 150 texts repeat another text, and count once"):
        found = texts_of_files(members, held_out, limit=None, seed=0)
    assert len(found) == 30
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (
            len(
                texts_of_files(
                    held_out, jsonl(tmp_path / "m.jsonl", [{"text": t} for t in long[:15]]), limit=None, seed=0
                )
            )
            == 30
        )


@pytest.mark.parametrize("blank", ["", "  ", "\n\t", "\u200b\u2060", "\u3164", "\u00a0", "\u2800"])
def test_blank_texts_are_named(tiny: LanguageModel, tmp_path: Path, blank: str) -> None:
    with pytest.raises(DataError, match="text odd is blank"):
        scored_membership(tiny, [*texts(True), *texts(False), MemberText("odd", blank, True)])
    path = jsonl(tmp_path / "in.jsonl", [{"text": "some words"}, {"text": blank}])
    with pytest.raises(DataError, match="a non-empty string is needed") as caught:
        texts_of_files(path, path, limit=None, seed=0)
    assert caught.value.row == 2
    rows = [*questions(), {"question": "Which?", "choices": ["red", blank, "blue"], "answer": "A"}]
    rows.append({"question": blank, "choices": ["red", "green", "blue"], "answer": "A"})
    found = load_benchmark(jsonl(tmp_path / "set.jsonl", rows))
    assert [(one.row, one.reason) for one in found.exclusions] == [
        (13, "option B is empty"),
        (14, "the question is empty"),
    ]


def test_own_files_of_swaps_and_requests_hold_each_item_once(tmp_path: Path) -> None:
    swaps = tmp_path / "swaps.toml"
    swaps.write_text('texts = ["He is tall and | calm.", "She is old and | calm.", "He is tall and | calm."]\n')
    with pytest.raises(DataError, match="swap-3 is the same as swap-1"):
        load_swap_items(swaps)
    requests = tmp_path / "requests.toml"
    requests.write_text(
        'requests = ["Tell of a {group}.", "Tell of a {group}."]\nrefusing = "No"\ncompliant = "Yes"\n'
        '[[axes]]\nname = "g"\ngroups = ["man", "woman"]\n'
    )
    with pytest.raises(DataError, match=r"is request 1 again"):
        load_refusal_set(requests)
