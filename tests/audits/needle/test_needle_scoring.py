"""Evidence from answers: stubs of known behaviour, other systems' outputs, the cliff, figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from lm_audit.audits.needle import (
    Answer,
    evaluate,
    grid_evidence,
    read_folder,
    samples_needed,
    score_outputs,
    write_grid,
)
from lm_audit.audits.needle.answers.scores import precision, settled
from lm_audit.audits.needle.controls.stubs import (
    MiddleReader,
    NeedleReader,
    middle_control,
    reader_control,
    stub_samples,
)
from lm_audit.audits.needle.grid.cells import SCORERS, Scored, share
from lm_audit.audits.needle.grid.cliff import cliff, possible_level
from lm_audit.audits.needle.samples.sample import Sample
from lm_audit.cli import main
from lm_audit.errors import DataError
from lm_audit.gates.gate import Gate, judge
from lm_audit.stats import Estimate
from tests.audits.needle.text.needle_tokenizers import small_tokenizer
from tests.present import present

Record = Mapping[str, object]

SMALL = {"target_length": 800, "length_interval": 400, "num_positions": 3, "num_samples": 2, "tokens_to_generate": 16}


def test_reader_of_the_needle_scores_one_everywhere() -> None:
    evidence = evaluate(NeedleReader(), stub_samples(1))
    assert evidence.metrics["needle.accuracy"].value == 1.0
    assert evidence.metrics["needle.boundary"].value == 1.0
    assert evidence.metrics["needle.precision"].value == 1.0
    assert all(row["all"] == 1.0 for row in evidence.rows)


def test_reader_of_the_middle_finds_what_stands_there() -> None:
    evidence = evaluate(MiddleReader(), stub_samples(1))
    assert {row["depth"] for row in evidence.rows if row["all"] == 1.0} == {50.0}
    assert {row["all"] for row in evidence.rows if row["depth"] == 50.0} == {1.0}


def test_controls_notice_stubs_that_misbehave(monkeypatch: pytest.MonkeyPatch) -> None:
    assert present(reader_control(1).control).passed
    assert present(middle_control(1).control).passed
    monkeypatch.setattr(NeedleReader, "answer", lambda self, samples: [Answer("9999999") for _ in samples])
    monkeypatch.setattr(MiddleReader, "_middle", lambda self, text: text)
    assert not present(reader_control(1).control).passed
    assert not present(middle_control(1).control).passed


class Parrot:
    """Answers every prompt with the same text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def answer(self, samples: Sequence[Sample]) -> list[Answer]:
        return [Answer(self.text) for _ in samples]


def test_empty_answers_are_pointed_out() -> None:
    evidence = evaluate(Parrot("  "), stub_samples(1))
    assert evidence.metrics["needle.accuracy"].value == 0.0
    assert evidence.metrics["needle.empty_answers"].value == 1.0
    assert any("are empty" in note for note in evidence.notes)


def test_listing_every_number_finds_all_with_low_precision() -> None:
    text = " ".join(str(number) for number in range(1_000_000, 1_000_100))
    assert precision(text, ["1000007"]) == pytest.approx(0.01)
    assert precision("nothing", ["1000007"]) is None


def test_answer_is_settled_once_something_follows_every_value() -> None:
    assert not settled("It is 1234567", ["1234567"])
    assert settled("It is 1234567. ", ["1234567"]) and settled("It is 1234567!", ["1234567"])
    assert not settled("It is 1234567.", ["1234567"])  # 1234567.5 is another number
    assert not settled("1234567,765432", ["1234567"]) and settled("1234567,7654321 ", ["1234567"])
    assert not settled("1234567\u202f89", ["1234567"])
    assert not settled("It is 12345678 ", ["1234567"])
    assert not settled("1234567, ", ["1234567", "7654321"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_grid(SMALL, tmp_path / "grid", tokenizer=small_tokenizer("byte-level"))
    return tmp_path / "grid"


def write_outputs(path: Path, records: Iterable[Record]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_outputs_of_another_system_by_id(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [{"id": s.id, "pred": f"It is {s.outputs[0]}."} for s in read_folder(folder)]
    records[3]["pred"] += "0"
    records[4]["pred"] = records[4]["pred"].replace(".", "1")
    outputs = write_outputs(tmp_path / "outputs.jsonl", reversed(records))
    assert main(["needle", "score", str(folder), str(outputs), "--json", str(tmp_path / "e.json")]) == 0
    metrics = json.loads((tmp_path / "e.json").read_text(encoding="utf-8"))["metrics"]
    assert metrics["needle.accuracy"]["value"] == 1.0
    assert metrics["needle.boundary"]["value"] == pytest.approx(11 / 12)
    assert "needle.accuracy" in capsys.readouterr().out


def test_outputs_in_a_folder_by_index(folder: Path, tmp_path: Path) -> None:
    for path in folder.glob("length_*/*.jsonl"):
        records = [
            {"index": s["index"], "pred": s["input"] + s["answer_prefix"] + " " + s["outputs"][0]}
            for s in map(json.loads, path.read_text(encoding="utf-8").splitlines())
        ]
        write_outputs(tmp_path / "out" / path.relative_to(folder), records)
    scored = score_outputs(folder, tmp_path / "out")
    assert [one.score("boundary") for one in scored] == [1.0] * 12
    # The prompt, which holds the value, is not part of the answer.
    assert all(len(one.answer.text) < 20 for one in scored)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda records: records[:-1], "no output for sample"),
        (lambda records: [*records, records[0]], "second output"),
        (lambda records: [*records, {"id": "L1-P0-0", "pred": ""}], "which is no sample"),
        (lambda records: [{"pred": "x"}, *records], "names no sample"),
        (lambda records: [{"id": records[0]["id"]}, *records[1:]], "holds no text"),
        (lambda records: [{**records[0], "pred": 3}, *records[1:]], "expected text"),
    ],
)
def test_outputs_that_do_not_match_are_errors(
    folder: Path, tmp_path: Path, change: Callable[[list[Record]], list[Record]], message: str
) -> None:
    records: list[Record] = [{"id": sample.id, "pred": "x"} for sample in read_folder(folder)]
    outputs = write_outputs(tmp_path / "outputs.jsonl", change(records))
    with pytest.raises(DataError, match=message):
        score_outputs(folder, outputs)


def test_nothing_to_evaluate_is_an_error() -> None:
    with pytest.raises(DataError, match="no samples"):
        grid_evidence([])


def accuracies(*counts: tuple[int, int]) -> dict[int, Estimate]:
    return {1000 * (i + 1): share([1.0] * k + [0.0] * (n - k)) for i, (k, n) in enumerate(counts)}


def test_cliff_is_the_last_length_before_the_first_that_is_not_shown_good() -> None:
    found = cliff(accuracies((50, 50), (49, 50), (40, 50), (50, 50)), 0.85)
    assert found.value == 2000.0
    assert found.high is None, "0.8 of 50 may still be 0.888, and the longest length was answered"
    assert "next length: 3000" in present(found.note)
    assert cliff(accuracies((50, 50), (49, 50), (40, 50), (20, 50)), 0.85).high == 3000.0


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([(50, 50), (50, 50), (50, 50)], ["met", "met", "met", "undecided"]),
        ([(50, 50), (50, 50), (20, 50)], ["met", "met", "missed", "missed"]),
        ([(50, 50), (40, 50), (20, 50)], ["met", "undecided", "missed", "missed"]),
        ([(50, 50), (40, 50), (40, 50)], ["met", "undecided", "undecided", "undecided"]),
    ],
)
def test_what_a_cliff_tells_of_a_limit(counts: list[tuple[int, int]], words: list[str]) -> None:
    """Where the longest length is read, or may be, nothing tells that the cliff does not lie beyond it."""
    found = cliff(accuracies(*counts), 0.85)
    assert [judge(Gate("needle.cliff", low=limit), found).word for limit in (1000, 2000, 3000, 4000)] == words


def test_the_far_end_of_the_cliff_allows_for_the_number_of_lengths() -> None:
    """Of five lengths at the threshold one falls short by chance: the true cliff lay beyond in 10 of 100 grids."""
    rng, beyond = np.random.default_rng(2), 0
    for _ in range(400):
        counts = rng.binomial(220, 0.85, 5)
        wide = {k: share([1.0] * n + [0.0] * (220 - n), confidence=possible_level(5)) for k, n in enumerate(counts, 1)}
        narrow = {k: share([1.0] * n + [0.0] * (220 - n)) for k, n in enumerate(counts, 1)}
        found = cliff(narrow, 0.85, wide)
        beyond += found.value is not None and found.high is not None and found.high < 5
    assert possible_level(5) == pytest.approx(0.99) and possible_level(1) == pytest.approx(0.95)
    assert beyond <= 0.05 * 400
    scored = [*answered_grid({1000: 215, 2000: 175})]
    plain = grid_evidence(scored).metrics["needle.cliff"]
    assert (plain.value, plain.high) == (1000.0, None)


def answered_grid(found: Mapping[int, int]) -> list[Scored]:
    """Of 220 prompts of each length so many answered rightly; 175 (0.795) is short of 0.85 at 95 %, not at 97.5."""
    return [
        Scored(f"{n}-{k}", n, 50.0, 50.0, dict.fromkeys(SCORERS, float(k < hits)), None, Answer("x"), ("1",), "")
        for n, hits in found.items()
        for k in range(220)
    ]


def test_cliff_beyond_what_was_measured() -> None:
    found = cliff(accuracies((50, 50)), 0.85)
    assert "beyond" in present(found.note) and (found.low, found.high) == (1000.0, None)


def test_cliff_needs_enough_samples() -> None:
    found = cliff(accuracies((6, 6)), 0.85)
    assert found.value is None
    assert f"{samples_needed(0.85)}, all answered" in present(found.note)
    assert samples_needed(0.85) == 23


def test_cliff_below_the_shortest_length() -> None:
    assert "already below" in present(cliff(accuracies((5, 50)), 0.85).note)


def test_figures_hold_every_cell_and_stay_small() -> None:
    evidence = evaluate(MiddleReader(), stub_samples(1))
    figures = {figure.name: figure for figure in evidence.figures}
    cells = figures["heatmap"].data["data"]["values"]
    assert len(cells) == 10
    assert all({"n", "low", "high", "accuracy"} <= set(cell) for cell in cells)
    worst = figures["worst_cells"].data["rows"]
    assert [row["accuracy"] for row in worst] == sorted(row["accuracy"] for row in worst)
    assert "One of the special magic" in worst[0]["around_needle"]
    assert len(json.dumps([figure.data for figure in evidence.figures])) < 500_000


def test_heatmap_is_drawn(tmp_path: Path) -> None:
    import vl_convert

    evidence = evaluate(MiddleReader(), stub_samples(1))
    for figure in evidence.figures:
        if figure.kind == "vega-lite":
            spec = {**figure.data, "width": 400}
            assert vl_convert.vegalite_to_svg(spec).startswith("<svg")
