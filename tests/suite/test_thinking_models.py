"""Thinking models from their weights to the page: the thought is kept apart, stored and folded, never the answer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lm_audit.audits.bias import bbq_generated, counterfactual_continuations, load_swap_items
from lm_audit.audits.leakage import completions
from lm_audit.audits.leakage.half_option.cuts import chat_opening
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.item import Item
from lm_audit.audits.needle.grid.plans import Asking, plans
from lm_audit.audits.needle.grid.whole_grid import measurable
from lm_audit.audits.needle.options import OPTIONS
from lm_audit.audits.privacy.data.prepare import make_canaries
from lm_audit.audits.privacy.measure.extraction_generated import generated_extraction
from lm_audit.audits.privacy.stages.config import smoke_config
from lm_audit.models import LanguageModel, load_model
from lm_audit.models.text.chat import ChatSettings
from lm_audit.sources import unreproduced
from tests.models.text.thinking_model import save_thinking_model

ROOT = Path(__file__).resolve().parents[2]
THOUGHT, ANSWER = "Sure, here is how: A, or 1234567.", "I'm sorry, but I can't help with that."


def question(number: int) -> dict[str, Any]:
    return {
        "example_id": number,
        "question_index": str(number // 2),
        "question_polarity": ("nonneg", "neg")[number % 2],
        "context_condition": "ambig",
        "category": "Age",
        "answer_info": {"ans0": ["Ann", "old"], "ans1": ["Bo", "nonOld"], "ans2": ["Unknown", "unknown"]},
        "additional_metadata": {"stereotyped_groups": ["old"]},
        "context": f"Ann and Bo met at {number}.",
        "question": "Who was late?",
        "ans0": "Ann",
        "ans1": "Bo",
        "ans2": "Unknown",
        "label": 2,
    }


QUESTIONS = [question(number) for number in range(4)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models that refuse, that choose B, and that never end their thought, the last of a short context."""
    base = tmp_path_factory.mktemp("thinking")
    save_thinking_model(base / "refuses", THOUGHT, ANSWER)
    save_thinking_model(base / "chooses", THOUGHT, "B")
    save_thinking_model(base / "loops", THOUGHT, "B", ends=False, context=512)
    return base


def model(folder: Path, name: str, *, thinking: int = 64, **arguments: Any) -> LanguageModel:
    found = load_model(folder / name, device="cpu")
    found.chat_settings = ChatSettings(arguments, thinking)
    return found


def value(evidence: Any, name: str) -> float | None:
    found: float | None = evidence.metrics[name].value
    return found


def test_bbq_reads_the_answer_behind_the_thought_and_keeps_both(folder: Path) -> None:
    found = bbq_generated(model(folder, "chooses"), QUESTIONS)
    assert value(found, "bias.bbq_generated_unparsed") == value(found, "bias.bbq_generated_no_answer") == 0.0
    assert {row["replies"] for row in found.rows} == {" | ".join("B" * 6)}
    assert all(row["thought"] == "\n\n".join([THOUGHT] * 6) for row in found.rows)
    plain = bbq_generated(model(folder, "chooses", enable_thinking=False), QUESTIONS)
    assert plain.rows[0]["thought"] is None and plain.rows[0]["choices"] == found.rows[0]["choices"]


def test_bbq_counts_what_never_came_to_an_answer(folder: Path) -> None:
    endless = bbq_generated(model(folder, "loops", thinking=4096), QUESTIONS)
    assert value(endless, "bias.bbq_generated_no_answer") == value(endless, "bias.bbq_generated_unparsed") == 1.0
    assert any("24 of 24 replies hold no answer" in note for note in endless.notes)
    # Cut at its limit, the thought is closed in the model's stead, and the answer comes.
    cut = bbq_generated(model(folder, "loops", thinking=8), QUESTIONS)
    assert value(cut, "bias.bbq_generated_no_answer") == 0.0 and cut.rows[0]["replies"].startswith("B")
    assert "24 of 24 thoughts were closed at --thinking-tokens" in cut.notes
    # An answer that names no option is another thing than none.
    refusing = bbq_generated(model(folder, "refuses"), QUESTIONS)
    assert value(refusing, "bias.bbq_generated_no_answer") == 0.0
    assert value(refusing, "bias.bbq_generated_unparsed") == 1.0


def test_extraction_is_what_is_said_and_not_what_is_thought(folder: Path, tmp_path: Path) -> None:
    manifest = make_canaries(
        smoke_config(output=tmp_path, members=4, controls=4, repetitions=(1, 4)), tmp_path / "manifest.jsonl"
    )
    member = manifest.members[0]
    start, end = member.secret_span
    secret = member.text[start:end].strip()
    save_thinking_model(tmp_path / "thinks", f"It is {secret}.", "I do not know.")
    save_thinking_model(tmp_path / "says", "I know that.", secret)
    thinks = generated_extraction(model(tmp_path, "thinks"), manifest, samples=1)
    says = generated_extraction(model(tmp_path, "says"), manifest, samples=1)
    share = 1 / len(manifest.members)
    assert value(thinks, "privacy.generated.extraction.member.greedy") == 0.0
    assert value(thinks, "privacy.generated.in_thought") == pytest.approx(share)
    assert value(says, "privacy.generated.extraction.member.greedy") == pytest.approx(share)
    assert thinks.rows[0]["wrote"] == "I do not know." and thinks.rows[0]["thought"] == f"It is {secret}."
    endless = generated_extraction(model(folder, "loops", thinking=4096), manifest, samples=1)
    assert value(endless, "privacy.generated.no_answer") == 1.0
    assert any("hold no answer" in note for note in endless.notes)
    cut = generated_extraction(model(folder, "loops", thinking=8), manifest, samples=1)
    assert "16 of 16 thoughts were closed at --thinking-tokens" in cut.notes


@pytest.mark.slow
def test_continuations_leave_out_what_never_came(folder: Path) -> None:
    items = load_swap_items(ROOT / "fixtures" / "bias" / "counterfactual_en.toml")
    said = counterfactual_continuations(model(folder, "refuses"), items)
    assert said.rows[0]["continuation"] == ANSWER and THOUGHT in said.rows[0]["thought"]
    assert value(said, "bias.counterfactual_generated_change") == 0.0
    endless = counterfactual_continuations(model(folder, "loops", thinking=4096), items[:2] + items[-2:])
    assert value(endless, "bias.counterfactual_generated_change") is None
    assert endless.rows[0]["continuation"] is None and endless.rows[0]["change"] is None
    assert any("lack a continuation" in note for note in endless.notes)
    cut = counterfactual_continuations(model(folder, "loops", thinking=8), items[:2] + items[-2:])
    assert "8 of 8 thoughts were closed at --thinking-tokens" in cut.notes


def test_a_length_that_leaves_no_room_for_the_thought_is_left_out(folder: Path) -> None:
    options = {option.name: option.default for option in OPTIONS} | {"needle_lengths": "400,440"}
    (plan,) = plans(lambda name: options[name], "smoke", 0, ROOT / "fixtures" / "needle" / "plans.toml", Asking())
    lengths, reasons = measurable(model(folder, "loops", thinking=100), plan)
    assert lengths == [400] and "its thought of 100" in reasons[0] and "--thinking-tokens" in reasons[0]
    (plain,) = plans(
        lambda name: options[name],
        "smoke",
        0,
        ROOT / "fixtures" / "needle" / "plans.toml",
        Asking(chat_args={"enable_thinking": False}),
    )
    assert measurable(model(folder, "loops", thinking=100, enable_thinking=False), plain) == ([400, 440], [])


def audited(folder: Path, reports: Path, *arguments: str) -> tuple[dict[str, dict[str, Any]], Path]:
    """``pytest evals`` on the models in a process of its own: metrics of each case, and the run's folder."""
    (folder / "bbq.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)))
    words = ["--data", f"bbq={folder / 'bbq.jsonl'}", "--needle-lengths", "440", "--needle-depths", "1"]
    words += ["--needle-samples", "1", "--reports", str(reports), "-p", "no:cacheprovider", "-q"]
    words += ["-k", "test_refusal or test_cell or generated_choice", *arguments]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "evals", *words], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout[-3000:]
    (run,) = reports.glob("2*")
    records = map(json.loads, (run / "evidence.jsonl").read_text(encoding="utf-8").splitlines())
    cases = {record["case_id"].split("::")[1]: record["metrics"] for record in records if "metrics" in record}
    return cases, run


def test_a_thought_is_no_completion_of_an_option(folder: Path) -> None:
    rows = [Item(str(k), "set", f"Which soil {k}?", ("red clay", "blue sand", "green loam"), "A") for k in range(3)]
    benchmark = Benchmark("set", tuple(rows), ("set",), 3, 3, by_file={"set": 3})
    asked = model(folder, "chooses")
    for opening in ("", chat_opening(asked.tokenizer)):
        found = completions(asked, benchmark, opening=opening, seed=0)
        assert all("think" not in str(row["wrote"]) for row in found.rows)
        lost = [row for row in found.rows if row["wrote"] is None]
        assert all(row["thought"] is not None and row["exact"] is None for row in lost)
        assert bool(lost) == any("completions are a thought" in note for note in found.notes)
        if len(lost) == len(found.rows):
            assert value(found, "leakage.completion.edit_similarity") is None
    assert unreproduced(found) == []


@pytest.mark.slow
def test_a_real_run_keeps_thoughts_apart_and_folds_them_on_the_page(folder: Path, tmp_path: Path) -> None:
    models = [word for name in ("refuses", "chooses", "loops") for word in ("--model", f"{name}={folder / name}")]
    cases, run = audited(folder, tmp_path / "run", *models, "--thinking-tokens", "24")

    def metric(case: str, name: str) -> float:
        found = next(metrics for key, metrics in cases.items() if key.startswith(case))
        return float(found[name]["value"])

    assert metric("test_refusal[refuses", "bias.refusal_rate.woman") == 100.0
    assert metric("test_refusal[chooses", "bias.refusal_rate.woman") == 0.0
    assert metric("test_refusal[loops", "bias.refusal_no_answer") == 0.0
    assert metric("test_cell[refuses", "needle.accuracy") == metric("test_cell[refuses", "needle.no_answer") == 0.0
    assert metric("test_generated_choice[chooses", "bias.bbq_generated_no_answer") == 0.0
    rows = [json.loads(line) for path in (run / "rows").glob("*refus*") for line in path.open(encoding="utf-8")]
    assert rows and all(THOUGHT not in str(row.get("reply", row.get("answer", ""))) for row in rows)
    assert "thought" in (run / "index.html").read_text(encoding="utf-8")
    plain, _ = audited(folder, tmp_path / "plain", *models[:2], "--chat-args", "enable_thinking=false")
    assert next(m for key, m in plain.items() if "refusal" in key)["bias.refusal_rate.woman"]["value"] == 100.0
    endless, _ = audited(folder, tmp_path / "endless", *models[4:], "--thinking-tokens", "4096")
    assert next(m for key, m in endless.items() if "refusal" in key)["bias.refusal_no_answer"]["value"] == 100.0
