"""Runs of pytest on a served model: skips by capability, provenance, resuming, budget, secrets."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from pathlib import Path

import pytest

from lm_audit.cli import main
from tests.endpoint.servers.made_server import Fault, made_server, words
from tests.endpoint.servers.toy_project import AUDIT, answers, audit, last_run, ledger
from tests.plugin.toy_run import REPOSITORY, command, environment, run_pytest, write_project

KEY = "sk-planted-0123456789abcdef"


def test_a_case_that_a_server_cannot_serve_is_skipped_with_what_is_missing(tmp_path: Path) -> None:
    with made_server() as made:
        done = audit(tmp_path, made.spec, "-rs", "-n", "2", "-v")
    assert done.counts == {"passed": 2, "skipped": 2}, done.output
    assert "model made does not offer: hidden states (the weights are behind a server)" in done.output
    assert "training (the weights are behind a server)" in done.output
    # Six questions a case, asked twice by each worker that meets them first.
    told = re.findall(r"^    (\d+) requests, ([\d.]+) a second, (\d+) tokens$", done.output, re.MULTILINE)
    assert len(told) == 2 and all(float(rate) > 0 for _, rate, _ in told), done.output
    assert all(int(requests) in (6, 12) and int(tokens) >= 6 * 10 for requests, _, tokens in told)
    run = last_run(tmp_path)
    kept = answers(run)
    assert len(kept) == len({one["key"] for one in kept}) == 12
    figures = {line["name"]: line["value"] for line in ledger(run) if line.get("name", "").startswith("endpoint.")}
    assert figures["endpoint.requests"] == 12 and figures["endpoint.retries"] == 0
    assert figures["endpoint.system_fingerprint"] == "fp-1" and figures["endpoint.prompt_tokens"] > 0
    assert "(deterministic)" in figures["endpoint.determinism"]
    assert "test_asks[made@endpoint-first]" in json.dumps(ledger(run))


def test_a_run_that_broke_off_goes_on_with_what_was_not_answered(tmp_path: Path) -> None:
    with made_server() as made:
        # The last question of the first case fails for good: what came before it is kept.
        made.answer = lambda route, body: (
            {"error": {"message": "out of order"}} if "number 5" in json.dumps(body) else words(route, body)
        )
        done = audit(tmp_path, made.spec, "--concurrency", "1")
        assert done.counts["failed"] == 2 and "answered 200 with an error: out of order" in done.output
        assert "Traceback" not in done.output
        run, before = last_run(tmp_path), len(made.asked)
        assert len(answers(run)) == 10
        made.answer = words
        again = audit(tmp_path, made.spec, "--resume", run.name)
        assert again.counts.get("failed") is None, again.output
    new = [prompt for prompt in made.prompts()[before:] if "question" in prompt]
    # Two that were never answered, and the six of the first case again, to see whether answers repeat.
    assert sum("number 5" in prompt for prompt in new) == 3 and len(new) == 8
    assert len(answers(run)) == 12


def test_answers_are_shared_between_runs_only_where_that_is_asked_for(tmp_path: Path) -> None:
    with made_server() as made:
        audit(tmp_path, made.spec)
        first = last_run(tmp_path)
        audit(tmp_path, made.spec)
        second = last_run(tmp_path)
        assert len(answers(second)) == 12
        done = audit(tmp_path, made.spec, "--reuse-answers", first.name)
        third = last_run(tmp_path)
    assert done.counts["passed"] == 2
    assert third not in (first, second) and not (third / "answers").exists()
    figures = {line["name"]: line["value"] for line in ledger(third) if line.get("name", "").startswith("endpoint.")}
    assert figures["endpoint.requests"] == 0 or figures["endpoint.kept_answers"] == 12


def test_a_case_ends_as_budget_where_the_tokens_are_spent(tmp_path: Path) -> None:
    with made_server() as made:
        done = audit(tmp_path, made.spec, "--max-tokens-spent", "20", "--concurrency", "1")
        assert done.counts["failed"] == 2 and "tokens are spent, --max-tokens-spent is 20" in done.output, done.output
        run = last_run(tmp_path)
        kept = len(answers(run))
        assert 0 < kept < 12
        ends = [line for line in ledger(run) if line["kind"] == "case_end" and line["outcome"] == "failed"]
        assert {line["cause"] for line in ends} == {"budget"}
        again = audit(tmp_path, made.spec, "--resume", run.name, "--max-tokens-spent", "100000")
        assert again.counts["passed"] == 2, again.output
    assert len(answers(run)) == 12


def test_a_key_is_in_no_file_and_no_output(tmp_path: Path) -> None:
    def telling(route: str, body: dict[str, object]) -> dict[str, object]:
        if "second question" in json.dumps(body):
            return {"error": {"message": f"no, {KEY}"}}
        said = words(route, body)
        choice = said["choices"][0]
        choice.update({"message": {"content": f"your key is {KEY}"}} if "message" in choice else {"text": KEY})
        said["system_fingerprint"] = KEY
        return said

    with made_server(telling) as made:
        made.wanted_key = KEY
        made.faults = [Fault(status=400, body=json.dumps({"error": {"message": f"bad {KEY}"}}))]
        done = audit(tmp_path, made.spec, "-l", "-vv", "--full-trace", OPENAI_API_KEY=KEY, OPENAI_LOG="debug")
        wrong = audit(tmp_path, made.spec, OPENAI_API_KEY=f"{KEY}-not")
    assert (done.counts["passed"], done.counts["failed"]) == (1, 1), done.output
    assert "no, [key]" in done.output
    assert wrong.code == 4 and "refuses the key in OPENAI_API_KEY (401)" in wrong.output
    assert made.keys.count(KEY) > 5
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(b"your key is [key]" in path.read_bytes() for path in files)
    for path in files:
        assert KEY.encode() not in path.read_bytes(), path
    assert KEY not in done.output + wrong.output


@pytest.mark.parametrize(
    ("spec", "arguments", "message"),
    [
        ("openai:m@http://127.0.0.1:{port}/v1", (), "cannot be reached"),
        ("openai:m@http://no-such-host.invalid/v1", ("--allow-insecure",), "cannot be reached"),
        ("openai:m@http://example.org/v1", (), "--allow-insecure"),
        ("openai:m@localhost:{port}/v1", (), "no scheme"),
        ("tiny", ("--tokenizer", "tiny=smollm2"), "no served model is called 'tiny'"),
        ("tiny", ("--reuse-answers", "absent"), "no run 'absent'"),
        ("tiny", ("--concurrency", "0"), "not a whole number of at least 1"),
    ],
)
def test_what_cannot_be_is_one_line_before_any_case(
    tmp_path: Path, closed_port: int, spec: str, arguments: tuple[str, ...], message: str
) -> None:
    # A resolver that reaches nobody answers within the time that a connection may take.
    done = audit(tmp_path, spec.format(port=closed_port), *arguments, RES_OPTIONS="timeout:1 attempts:1")
    assert done.code == 4 and message in done.output, done.output
    assert "Traceback" not in done.output
    assert not (tmp_path / "reports").exists()


def test_after_a_kill_only_what_was_not_answered_is_asked(tmp_path: Path) -> None:
    twelfth, killed = threading.Event(), threading.Event()

    def slow(route: str, body: dict[str, object]) -> dict[str, object]:
        if sum("question" in prompt for prompt in made.prompts()) >= 12:  # Before the killing none is answered now.
            twelfth.set()
            killed.wait(300)
        return words(route, body)

    with made_server(slow) as made:
        write_project(tmp_path, test_audit=AUDIT)
        words_of = command("--model", made.spec, "--concurrency", "2", "-k", "first")
        with subprocess.Popen(
            words_of, cwd=tmp_path, env=environment(QUESTIONS="30"), stdout=subprocess.DEVNULL
        ) as running:
            assert twelfth.wait(300)
            running.kill()
        killed.set()
        run = last_run(tmp_path)
        kept = len(answers(run))
        assert 8 <= kept < 12
        made.answer = words
        made.asked.clear()
        done = audit(tmp_path, made.spec, "--resume", run.name, "-k", "first", QUESTIONS="30")
        assert done.counts["passed"] == 1, done.output
    asked = [prompt for prompt in made.prompts() if "question" in prompt]
    assert len(answers(run)) == 30
    assert len(asked) == 30 - kept + 10, "ten are asked twice, to see whether answers repeat"


def test_the_table_of_what_a_model_offers(capsys: pytest.CaptureFixture[str], closed_port: int) -> None:
    with made_server() as made:
        assert main(["models", made.spec]) == 0
    told = {line[:25].strip(): line[25:].strip() for line in capsys.readouterr().out.splitlines()}
    assert told["generate"].startswith("yes") and told["gradients"].startswith("no")
    assert "none come back" in told["prompt log-probabilities"]
    assert main(["models", "tiny"]) == 0 and "no " not in capsys.readouterr().out
    assert main(["models", f"openai:m@http://127.0.0.1:{closed_port}/v1"]) == 2
    assert "cannot be reached" in capsys.readouterr().err


@pytest.mark.slow
def test_a_resumed_run_without_a_model_asks_the_server_once_for_all_workers(tmp_path: Path) -> None:
    with made_server() as made:
        audit(tmp_path, made.spec, "-k", "first")
        run, before = last_run(tmp_path), made.listed
        again = run_pytest(tmp_path, "--resume", run.name, "-n", "2")
        assert again.counts == {"passed": 1, "resumed": 1, "skipped": 2}, again.output
        assert made.listed == before + 1
    assert json.loads((run / "run.json").read_text(encoding="utf-8"))["options"]["servers"]


def test_a_case_longer_than_the_server_s_context_is_skipped_at_collection(tmp_path: Path) -> None:
    long = AUDIT.replace('Case("second")', 'Case("second", tokens=500)')
    write_project(tmp_path, test_audit=long)
    with made_server() as made:
        made.context = 400
        done = audit(tmp_path, made.spec, "-rs", "-k", "asks")
    assert done.counts == {"passed": 1, "skipped": 1, "deselected": 2}, done.output
    assert "the case with its answer needs 500 tokens, and model made reads at most 400" in done.output


def test_stages_behind_a_server_are_refused_before_anything_is_asked(tmp_path: Path) -> None:
    """The stages of privacy read ranks and entropy, of which a server tells none: what can be asked is named."""
    source = (REPOSITORY / "evals" / "test_privacy.py").read_text(encoding="utf-8")
    folder = write_project(tmp_path, test_privacy=source)
    (folder / "manifest.jsonl").write_text("", encoding="utf-8")
    with made_server() as made:
        words = ("--stages", f"base=tiny,sft={made.spec}", "--manifest", "manifest.jsonl", "--collect-only", "-q")
        done = run_pytest(folder, *words)
        assert made.asked == []
    assert done.code == 2, done.output
    assert "--stages sft: a model behind a server gives no ranks and no entropy" in done.output
    assert "Traceback" not in done.output
