"""Every case of every audit either runs on a served model or is skipped with the missing capability named."""

from __future__ import annotations

import csv
import importlib.util
import json
from pathlib import Path

import pytest

from lm_audit.audits.privacy import Manifest, plant_canaries, write_manifest
from lm_audit.models import load_model
from lm_audit.models.capabilities import Capability, missing
from lm_audit.models.endpoint.facts import EndpointFacts
from lm_audit.plugin.audit_cases.case import source_of
from tests.endpoint.servers.scoring_server import scoring_server
from tests.endpoint.test_served_audits import bbq_rows
from tests.plugin.toy_run import run_pytest

ROOT = Path(__file__).resolve().parents[2]
SCORES, DISTRIBUTION, PLAIN = "prompt log-probabilities", "next-token distribution", "continue text"

LLAMA_CPP = EndpointFacts(
    "m", "m", completions=True, chat=True, scores_why="the generated token alone", tokenizer="own"
)
VLLM = EndpointFacts("m", "m", completions=True, chat=True, prompt_scores="prompt_logprobs", tokenizer="own")
CHAT_ALONE = EndpointFacts("m", "m", chat=True, completions_why="no route", scores_why="no completions route")
SERVERS = (VLLM, LLAMA_CPP, CHAT_ALONE)

MATRIX: dict[str, tuple[str, str, str]] = {
    # what is missing on: a server in vLLM's form, in llama.cpp's, one that chats alone ("" runs)
    "test_minimal_probe": ("", SCORES, SCORES),
    "test_preference_grid": ("", SCORES, SCORES),
    "test_public_benchmark": ("", SCORES, SCORES),
    "test_generated_choice": ("", "", ""),
    "test_counterfactual_continuation": ("", "", PLAIN),
    "test_counterfactual_swap": ("", SCORES, SCORES),
    "test_refusal": ("", "", ""),
    "test_published_memorisation": (DISTRIBUTION, SCORES, SCORES),
    "test_memorisation": (DISTRIBUTION, SCORES, SCORES),
    "test_benchmark_overview": (DISTRIBUTION, SCORES, SCORES),
    "test_option_order": ("", SCORES, SCORES),
    "test_completion": ("", "", PLAIN),
    "test_text_likelihood": (DISTRIBUTION, SCORES, SCORES),
    "test_row_order": ("", SCORES, SCORES),
    "test_generated_extraction": ("", "", PLAIN),
    "test_membership_scores": ("", SCORES, SCORES),
}


def test_every_test_of_the_suite_runs_or_names_what_is_missing() -> None:
    found = set()
    for file in sorted((ROOT / "evals").glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(f"matrix_{file.stem}", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, function in vars(module).items():
            source = source_of(function)
            if source is None or "language_model" not in function.__code__.co_varnames:
                continue
            whole = [missing(source.needs, facts.offers) or "" for facts in SERVERS]
            if source.needs == tuple(Capability) or Capability.GRADIENTS in source.needs:
                assert all("gradients (the weights are behind a server)" in one for one in whole), name
                continue
            row = tuple(one.partition(" (")[0] for one in whole)
            assert row == (("", "", "") if file.stem == "test_needle" else MATRIX[name]), name
            found.add(name)
    assert set(MATRIX) <= found, set(MATRIX) - found


@pytest.mark.slow
def test_what_is_not_skipped_runs_on_a_server_in_vllm_s_form(tmp_path: Path) -> None:
    write_manifest(Manifest(tuple(plant_canaries([1] * 8, controls=8, seed=1)), seed=1), tmp_path / "canaries.jsonl")
    (tmp_path / "bbq.jsonl").write_text("".join(json.dumps(row) + "\n" for row in bbq_rows()), encoding="utf-8")
    with (tmp_path / "pairs.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["sent_more", "sent_less", "stereo_antistereo", "bias_type"])
        table.writerows(
            [f"He is a {job}.", f"She is a {job}.", "stereo", "gender"] for job in ("nurse", "cook", "judge")
        )
    local = load_model("tiny", device="cpu")
    with scoring_server(local, "prompt_logprobs") as made:
        made.context = (local.context_window or 0) + 1
        words = ["evals", "-m", "not control and not faithfulness", "-q", "-rs"]
        words += ["--model", f"served={made.spec}", "--tokenizer", "served=tiny", "--bias-boundary", "none"]
        words += ["--extraction-manifest", str(tmp_path / "canaries.jsonl"), "-p", "no:cacheprovider"]
        words += ["--data", f"bbq={tmp_path / 'bbq.jsonl'}", "--data", f"crows_pairs={tmp_path / 'pairs.csv'}"]
        words += ["--leakage-limit", "2", "--needle-lengths", "420", "--needle-depths", "2"]
        # One axis of the grids stands for all; what a pattern leaves out has no skip of its own.
        words += ["-k", "served and (not test_preference_grid or en-gender) and not general_zh"]
        words += ["--reports", str(tmp_path / "reports")]
        done = run_pytest(ROOT, *words, plugins=())
    output = done.output
    assert done.code == 0, output[-3000:]
    (ledger,) = (tmp_path / "reports").glob("*/ledger")
    lines = [json.loads(line) for file in ledger.glob("*.jsonl") for line in file.open(encoding="utf-8")]
    ends = [line for line in lines if line["kind"] == "case_end"]
    skipped = [line["message"] for line in ends if line["outcome"] == "skipped"]
    ran = {line["case_id"].partition("::")[2].partition("[")[0] for line in ends if line["outcome"] == "passed"}
    # Two rows in the order of the alphabet prove nothing; what row order gives is held in test_scored_audits.
    assert ran >= {name for name, (here, _, _) in MATRIX.items() if not here} - {"test_row_order"}, output[-3000:]
    reasons = ("model served does not offer: ", "needs the public data set: ", "the rows are sorted")
    assert skipped and all(reason.startswith(reasons) for reason in skipped), skipped
    assert any("next-token distribution" in reason for reason in skipped)
