"""What pytest users expect: selection, -x, --lf, exit codes, reruns, missing plugins; and the plugin's own options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.plugin.toy_audit import AUDIT, MODEL_AUDIT, audit_project, last_run, outcomes, run_pytest

FAILING = AUDIT + '\n    assert case.id != "b"\n'


@pytest.mark.parametrize(
    ("source", "arguments", "code"),
    [
        (AUDIT, (), 0),
        (AUDIT, ("-p", "no:xdist"), 0),
        (FAILING, (), 1),
        (FAILING, ("-n", "2"), 1),
        ("def broken(:\n", (), 2),
        (AUDIT, ("--no-such-option",), 4),
        (AUDIT, ("-k", "nothing"), 5),
        (AUDIT, ("-m", "no_such_marker", "-o", "strict_markers=true"), 4),
    ],
)
def test_exit_codes_are_those_of_pytest(tmp_path: Path, source: str, arguments: tuple[str, ...], code: int) -> None:
    done = run_pytest(audit_project(tmp_path, source), *arguments)
    assert done.code == code, done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "tiny", "--model", "/x/tiny"), "the name 'tiny' is taken"),
        (("--model", "no-such-model"), "is neither an existing path nor a hub id"),
        (("--model", "./absent"), "no such folder"),
        (("--device", "gpu"), "use cpu, cuda, cuda:N or mps"),
        (("--device", "cuda:99"), "--device: device cuda:99: "),
        (("--device", "cpu", "--device", "cuda:99"), "--device: device cuda:99: "),
        (("--device", "mps:0"), "no such device"),
        (("--require-device", "tpu"), "--require-device 'tpu': no such device"),
        (("--data", "pairs.csv"), "write --data NAME=PATH"),
        (("--size", "huge"), "invalid choice: 'huge'"),
        (("--gates", "absent.toml"), "gates file absent.toml: there is no such file"),
        (("--gates", ""), "--gates '': names nothing"),
        (("--resume", ""), "--resume '': names nothing"),
        (("--seed", "-5"), "--seed: '-5' is not a whole number from 0 to 4294967295"),
        (("--dtype", "float3"), "--dtype float3: unknown dtype"),
    ],
)
def test_options_that_cannot_be_used_are_one_clear_line(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run_pytest(audit_project(tmp_path), *arguments)
    assert done.code == 4
    assert message in done.output
    assert "Traceback" not in done.output
    assert not (tmp_path / "reports").exists()


def test_stopping_at_the_first_failure_and_running_it_again(tmp_path: Path) -> None:
    audit_project(tmp_path, FAILING)
    done = run_pytest(tmp_path, "-x")
    assert done.counts == {"failed": 1, "passed": 1}
    assert outcomes(last_run(tmp_path)) == {"a": "passed", "b": "failed"}
    assert [case_id[-3:] for case_id in last_run(tmp_path).missing] == ["[c]"]
    again = run_pytest(tmp_path, "--lf")
    assert again.counts["failed"] == 1 and again.counts.get("passed", 0) == 0
    assert outcomes(last_run(tmp_path)) == {"b": "failed"}


def test_reruns_are_attempts(tmp_path: Path) -> None:
    pytest.importorskip("pytest_rerunfailures")
    flaky = AUDIT + '\n    assert case.id != "b" or os.environ.setdefault("SEEN", "") or os.environ.update(SEEN="1")\n'
    audit_project(tmp_path, flaky)
    done = run_pytest(tmp_path, "--reruns", "2", plugins=("xdist", "rerunfailures"))
    assert done.code == 0, done.output
    case = next(case for case in last_run(tmp_path).cases if "[b]" in case.case_id)
    assert [attempt.outcome for attempt in (*case.earlier, case.last)] == ["failed", "passed"]
    assert [attempt.number for attempt in (*case.earlier, case.last)] == [1, 2]


def test_markers_select_audits_and_devices(tmp_path: Path) -> None:
    audit_project(tmp_path, MODEL_AUDIT)
    arguments = ("--model", "tiny", "--device", "cpu", "--device", "mps", "--collect-only", "-q", "-m")
    chosen = run_pytest(tmp_path, *arguments, "bias and cpu").output
    assert "test_score[tiny@cpu-short]" in chosen and "mps" not in chosen
    assert "test_score" not in run_pytest(tmp_path, *arguments, "leakage").output
    listed = run_pytest(tmp_path, "--markers").output
    names = ("privacy", "leakage", "bias", "needle", "faithfulness", "control", "cpu", "cuda", "mps", "slow")
    assert all(f"@pytest.mark.{name}:" in listed for name in names)


def test_an_absent_device_beside_one_that_is_here_skips_and_names_what_is_missing(tmp_path: Path) -> None:
    audit_project(tmp_path, MODEL_AUDIT)
    arguments = ("--model", "tiny", "--device", "cpu", "--device", "cuda", "-rs", "-k", "short")
    done = run_pytest(tmp_path, *arguments, CUDA_VISIBLE_DEVICES="")
    assert (done.code, done.counts["skipped"]) == (0, 1)
    assert "device cuda: none found on this machine" in done.output
    assert outcomes(last_run(tmp_path))["tiny@cuda-short"] == "skipped"


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_run_on_absent_devices_alone_is_refused_before_collection(tmp_path: Path, workers: tuple[str, ...]) -> None:
    audit_project(tmp_path, "raise RuntimeError('collected')")
    done = run_pytest(tmp_path, "--model", "tiny", "--device", "cuda", *workers, CUDA_VISIBLE_DEVICES="")
    assert done.code == 4 and "device cuda: none found on this machine; here are cpu" in done.output
    assert "collected')" not in done.output
    listed = run_pytest(tmp_path, "--device", "cuda", "--collect-only", CUDA_VISIBLE_DEVICES="")
    assert "collected')" in listed.output


@pytest.mark.parametrize("device", [("--device", "cuda"), ()])
def test_a_required_device_that_is_absent_fails(tmp_path: Path, device: tuple[str, ...]) -> None:
    audit_project(tmp_path, MODEL_AUDIT)
    arguments = ("--model", "tiny", "--require-device", "cuda", "-k", "short", *device)
    done = run_pytest(tmp_path, *arguments, CUDA_VISIBLE_DEVICES="")
    assert done.code == 1
    assert "--require-device cuda: device cuda: none found on this machine" in done.output


SIZES = """
import pytest
from lm_audit.plugin import Case, cases

def sized(options):
    quick = Case("quick", {"size": options.size})
    return [quick, Case("long", marks=("slow",)), Case("gone", skip="needs --data x=PATH")]

@pytest.mark.bias
@cases(sized)
def test_x(case, evidence, run_options): pass

@pytest.mark.slow
def test_plain(): pass
"""


def test_slow_audits_follow_the_size(tmp_path: Path) -> None:
    audit_project(tmp_path, SIZES)
    smoke = run_pytest(tmp_path, "-rs")
    assert smoke.counts == {"passed": 2, "skipped": 2}
    assert "slow: runs at --size standard or full" in smoke.output
    assert "needs --data x=PATH" in smoke.output
    assert run_pytest(tmp_path, "--size", "standard").counts == {"passed": 3, "skipped": 1}


PREFLIGHT = """
import pytest
from lm_audit.errors import DataError
from lm_audit.plugin import Case, cases

def check(case, tokenizer, options):
    if len(tokenizer("a long text")["input_ids"]) > case.params["most"]:
        raise DataError(f"needs at most {case.params['most']} tokens", file="texts.csv", row=3)

@pytest.mark.bias
@cases([Case("ok", {"most": 99}), Case("bad", {"most": 1})], preflight=check)
def test_x(case, language_model, evidence): pass
"""


def test_what_needs_the_tokenizer_is_checked_before_weights_load(tmp_path: Path) -> None:
    audit_project(tmp_path, PREFLIGHT)
    done = run_pytest(tmp_path, "--model", "tiny", "--device", "cpu")
    assert done.counts == {"passed": 1, "error": 1}
    assert "DataError: texts.csv, row 3: needs at most 1 tokens" in done.output
    assert "Traceback" not in done.output
    bad = next(case for case in last_run(tmp_path).cases if "bad" in case.case_id)
    assert bad.model_details == {}, "the model was never asked for"


@pytest.mark.slow
@pytest.mark.parametrize("check", ["", ", preflight=check"], ids=["model", "tokenizer"])
def test_libraries_that_cannot_be_imported_are_told_in_a_line(tmp_path: Path, check: str) -> None:
    audit_project(tmp_path, PREFLIGHT.replace(", preflight=check", check))
    done = run_pytest(tmp_path, "--model", "tiny", "--device", "cpu", TORCH_LOGS="nonsense")
    assert done.counts == {"error": 2}
    assert "ModelError: torch and transformers cannot be imported" in done.output
    assert "Invalid log settings: nonsense" in done.output and "Traceback" not in done.output


LENGTHS = """
import pytest
from lm_audit.plugin import Case, cases

def lengths(case, tokenizer, options):
    return ((name, len(tokenizer(text)["input_ids"])) for name, text in case.params["texts"])

@pytest.mark.bias
@cases([Case("fits", {"texts": [("one", "a b c")]}), Case("not", {"texts": [("one", "a"), ("saga", "word " * 9999)]})],
       preflight=lengths)
def test_x(case, language_model, evidence): pass
"""


def test_texts_beyond_the_window_are_refused_before_weights_load(tmp_path: Path) -> None:
    audit_project(tmp_path, LENGTHS)
    done = run_pytest(tmp_path, "--model", "tiny", "--device", "cpu")
    assert done.counts == {"passed": 1, "error": 1}
    assert re.search(r"ContextError: saga needs \d{4,} tokens, and model tiny reads at most \d+", done.output)
    bad = next(case for case in last_run(tmp_path).cases if "not" in case.case_id)
    assert bad.model_details == {}, "the model was never asked for"


def test_a_value_without_a_plain_form_is_refused_by_name(tmp_path: Path) -> None:
    source = AUDIT.replace('evidence.parameter("seed", audit_seed)', 'evidence.parameter("seed", {1, 2})')
    done = run_pytest(audit_project(tmp_path, source), "-n", "2")
    assert done.code == 1
    assert "StoreError: value: cannot record a value of type builtins.set" in done.output


def test_audits_add_options_of_their_own(tmp_path: Path) -> None:
    source = """
from lm_audit.plugin import Case, cases
from lm_audit.errors import UsageError
import pytest

@cases([Case("a")])
def test_x(case, run_options):
    with pytest.raises(UsageError, match="no audit option is called 'benchmrk'"):
        run_options.option("benchmrk")
"""
    assert run_pytest(audit_project(tmp_path, source)).code == 0
