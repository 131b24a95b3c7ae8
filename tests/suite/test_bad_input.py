"""Options and the files that they name: what cannot be meant is refused by name, before a model loads."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
from _pytest.config import get_config

from lm_audit.errors import ContextError, DataError, DataWarning, HarnessError
from lm_audit.models import load_tokenizer
from lm_audit.plugin import Case
from lm_audit.plugin.audit_cases.case import CaseSource, source_of
from lm_audit.plugin.audit_cases.selection import Selection
from lm_audit.plugin.models.known import check_case, known_context
from lm_audit.plugin.options.run_options import RunOptions
from lm_audit.plugin.options.without_effect import without_effect
from lm_audit.plugin.record.audit_session import audit_session
from tests.plugin.toy_run import run_pytest, write_project

REPOSITORY = Path(__file__).resolve().parents[2]
LONG = "n" * 5000


@cache
def suite(audit: str) -> ModuleType:
    """The cases of an audit, as pytest would import them."""
    spec = importlib.util.spec_from_file_location(f"bad_input_{audit}", REPOSITORY / "evals" / f"test_{audit}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def collect(audit: str, options: RunOptions) -> None:
    """Ask every test of the audit for its cases."""
    for function in vars(suite(audit)).values():
        source = source_of(function)
        if source is not None:
            source.cases(options)


Configure = Callable[..., pytest.Config]


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Configure]:
    """Reads options as a call of pytest does, in a folder of its own; no model may load meanwhile."""

    def loaded(*_: Any, **__: Any) -> None:
        raise AssertionError("a model was loaded")

    for place in ("lm_audit.models.load_model", "lm_audit.models.loading.from_spec.load_model"):
        monkeypatch.setattr(place, loaded)
    monkeypatch.chdir(tmp_path)
    # Plugins that happen to be installed, and pytest's own garbage collections, take most of the time otherwise.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "blank.txt").write_text(" \n\u200b\n", encoding="utf-8")
    made: list[pytest.Config] = []

    def read(*arguments: str) -> pytest.Config:
        plugins: tuple[str, ...] = (
            "-p",
            "lm_audit.plugin",
            "-p",
            "lm_audit.plugin.short_options",
            "-p",
            "no:cacheprovider",
        )
        plugins += ("-p", "no:unraisableexception", "-p", "no:threadexception")
        config = get_config([*plugins, *arguments])
        made.append(config)
        config.parse([*plugins, *arguments])
        config._do_configure()
        return config

    yield read
    for config in made:
        config._ensure_unconfigure()


def refusal(configure: Configure, audit: str | None, *arguments: str) -> str:
    """What the call says, from its options alone or from the cases of an audit."""
    with pytest.raises((pytest.UsageError, HarnessError)) as caught:
        options = audit_session(configure(*arguments)).options
        assert audit is not None, f"{arguments} was accepted"
        collect(audit, options)
    message = str(caught.value)
    assert len(message) < 3000
    return message


OF_OPTIONS: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    (("--seed", "-1"), ("--seed", "'-1'", "whole number")),
    (("--seed", "1.5"), ("--seed", "'1.5'")),
    (("--seed", "nan"), ("--seed", "'nan'")),
    (("--seed", "1_0"), ("--seed", "'1_0'")),
    (("--seed", "٣"), ("--seed", "whole number")),
    (("--seed", str(2**32)), ("--seed", "4294967295")),
    (("--seed", "9" * 5000), ("--seed", "999...")),
    (("--seed", ""), ("--seed", "''")),
    (("--thinking-tokens", "-1"), ("--thinking-tokens", "'-1'")),
    (("--thinking-tokens", "inf"), ("--thinking-tokens", "'inf'")),
    (("--case-timeout", "0"), ("--case-timeout", "above 0")),
    (("--case-timeout", "nan"), ("--case-timeout", "'nan'")),
    (("--case-timeout", "inf"), ("--case-timeout", "'inf'")),
    (("--case-timeout", "1e300"), ("--case-timeout", "at most")),
    (("--max-model-crashes", "0"), ("--max-model-crashes", "'0'")),
    (("--leakage-limit", "0"), ("--leakage-limit", "'0'")),
    (("--leakage-limit", "-3"), ("--leakage-limit", "'-3'")),
    (("--leakage-orders", "0"), ("--leakage-orders", "1 to 99")),
    (("--leakage-orders", "1e3"), ("--leakage-orders", "'1e3'")),
    (("--needle-samples", "0"), ("--needle-samples", "'0'")),
    (("--needle-depths", "0"), ("--needle-depths", "'0'")),
    (("--needle-depths", "1000000000"), ("--needle-depths", "10000")),
    (("--needle-tokens", "0"), ("--needle-tokens", "'0'")),
    (("--needle-threshold", "0"), ("--needle-threshold", "above 0 and below 1")),
    (("--needle-threshold", "nan"), ("--needle-threshold", "'nan'")),
    (("--needle-threshold", "-0.5"), ("--needle-threshold",)),
    (("--needle-precision", "0.5"), ("--needle-precision", "below 0.5")),
    (("--bias-margin", "0"), ("--bias-margin", "above 0")),
    (("--bias-margin", "inf"), ("--bias-margin", "'inf'")),
    (("--bias-margin", "nan"), ("--bias-margin", "'nan'")),
    (("--deletion-steps", "-1"), ("--deletion-steps", "'-1'")),
    (("--attribution-hops", "1000000000"), ("--attribution-hops", "0 to 100")),
    (("--attribution-hops", "-1"), ("--attribution-hops", "'-1'")),
    (("--benchmark", " "), ("--benchmark", "empty")),
    (("--bias-grid", ""), ("--bias-grid", "empty")),
    (("--needle-folder", ""), ("--needle-folder", "empty")),
    (("--faithfulness-samples", ""), ("--faithfulness-samples", "empty")),
    (("--size", "Smoke"), ("--size", "Smoke")),
    (("--device", "cuda:-1"), ("--device", "cuda:-1")),
    (("--dtype", "int8"), ("--dtype int8",)),
    (("--model", ""), ("--model ''",)),
    (("--model", LONG), ("nnn",)),
    (("--model", "./absent"), ("absent",)),
    (("--model", "tiny:-1"), ("tiny:-1",)),
    (("--data", "crows_pairs"), ("--data 'crows_pairs'", "NAME=PATH")),
    (("--data", "CrowS_Pairs=x.csv"), ("--data CrowS_Pairs", "'crows_pairs'")),
    (("--data", "crows-pairs=x.csv"), ("--data crows-pairs", "'crows_pairs'")),
    (("--data", "crows=x.csv"), ("--data crows", "'crows_pairs'")),
    (("--data", "BBQ=x"), ("--data BBQ", "'bbq'")),
    (("--data", "stereo_set=x"), ("--data stereo_set", "'stereoset'")),
    (("--data", "bbq=a", "--data", "bbq=b"), ("--data 'bbq=b'", "already")),
    (("--chat-args", "enable_thinking"), ("--chat-args", "KEY=VALUE")),
    (("--chat-args", "a=NaN"), ("--chat-args", "NaN")),
    (("--chat-args", 'a={"b": 1, "b": 2}'), ("--chat-args", "twice")),
    (("--chat-args", 'a="\\ud800"'), ("--chat-args", "surrogate")),
    (("--chat-args", "a=1e999"), ("--chat-args", "too large")),
    (("--chat-args", "a=" + "9" * 5000), ("--chat-args", "digits")),
    (("--chat-args", "a=" + "[" * 50_000), ("--chat-args", "deep")),
    (("--chat", "off", "--chat-args", "a=1"), ("--chat-args", "--chat off")),
    (("--gates", "absent.toml"), ("absent.toml", "no such file")),
    (("--gates", "."), ("gates file .", "is a folder")),
    (("--gates", "/dev/zero"), ("/dev/zero", "device")),
    (("--gates", LONG), ("nnn", "File name too long")),
    (("--reports", ""), ("--reports ''",)),
    (("--resume", LONG), ("nnn",)),
    (("--baseline", "absent"), ("--baseline", "absent")),
    # Of ``--OPTION=--`` argparse leaves an empty list in place of the value.
    (("--gates=--",), ("--gates '--'", "names nothing")),
    (("--model=--",), ("--model '--'", "names nothing")),
    (("--size=--",), ("--size", "'--'")),  # that of Python 3.12 knows that it is none of the choices
    (("--needle-lengths=--",), ("--needle-lengths '--'", "names nothing")),
    (("--model", "~nosuchuser/model"), ("'~nosuchuser/model'", "no such folder")),
    (("--device", LONG), ("--device 'nnn", "no such device")),
    (("--dtype", LONG), ("--dtype nnn", "float32")),
    (("--data", LONG), ("--data 'nnn", "NAME=PATH")),
    (("--shard", LONG), ("--shard 'nnn",)),
    (("--reports", " \t"), ("--reports ' \\t'", "names nothing")),
    (("--reports", "~nosuchuser/reports"), ("--reports '~nosuchuser/reports'", "no such home")),
    (("--reports", "s3://bucket/reports"), ("s3://bucket/reports", "is an address")),
    (("--reports", LONG), ("nnn", "File name too long", "--reports DIR")),
    (("--reports", "a\0b"), ("no folder can be called", "a\\x00b")),
    (("--reports", "a\ud800"), ("no folder can be called",)),
    (("--basetemp", "reports", "--size", "full"), ("--basetemp", "pytest empties that folder")),
    # What pytest and its plugins would tell in a traceback, some of it when all has run.
    (("--junitxml", "/dev/full", "--size", "full"), ("--junitxml '/dev/full'", "No space left")),
    (("--junitxml", "/proc/absent/junit.xml", "--size", "full"), ("--junitxml", "/proc/absent")),
    (("--junitxml", "blank.txt/junit.xml", "--size", "full"), ("--junitxml", "blank.txt", "no folder")),
    (("--junitxml", "/dev/full"), ("--junitxml '/dev/full'", "No space left")),  # whatever is collected
    (("--debug=/dev/full",), ("--debug '/dev/full'", "No space left")),
    (("--debug=absent/debug.log",), ("--debug", "there is no folder")),
    (("--log-file", ".", "--size", "full"), ("--log-file", "is a folder")),
    (("--log-file", "loop/log", "--size", "full"), ("--log-file", "loop")),
    (("--basetemp", "blank.txt", "--size", "full"), ("--basetemp 'blank.txt'", "is no folder")),
    (("-p", "xdist", "--tx", "popn", "--dist", "load", "--size", "full"), ("--tx 'popn'", "write popen")),
    (("-p", "xdist", "--tx", "popen//python=pyhton3", "-d", "--size", "full"), ("no program 'pyhton3'",)),
    (("-p", "xdist", "--tx", "2*popen//nice=low", "-d", "--size", "full"), ("'low'", "whole number")),
    (("--reports", "loop/reports"), ("Too many levels of symbolic links", "--reports DIR")),
]


@pytest.mark.parametrize(("arguments", "fragments"), OF_OPTIONS, ids=lambda value: ascii(value)[:40])
def test_options(configure: Configure, arguments: tuple[str, ...], fragments: tuple[str, ...]) -> None:
    message = refusal(configure, None, *arguments)
    for fragment in fragments:
        assert fragment in message, message


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("LM_AUDIT_MODEL_GIB", "nan", "number of GiB above 0"),
        ("LM_AUDIT_MODEL_GIB", "1_0", "number of GiB above 0"),
        ("LM_AUDIT_MODEL_GIB", "-2", "number of GiB above 0"),
        ("LM_AUDIT_MODEL_GIB", "1e300", "number of GiB above 0"),
        ("LM_AUDIT_CACHE", "/dev/zero/cache", "'/dev/zero' is no folder"),
        ("LM_AUDIT_CACHE", "blank.txt", "blank.txt' is no folder"),
        ("HF_HUB_DOWNLOAD_TIMEOUT", "soon", "whole number"),
        ("HF_HUB_ETAG_TIMEOUT", "2.5", "whole number"),
    ],
)
def test_variables_of_the_environment(
    configure: Configure, monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setenv(name, value)
    message = refusal(configure, None, "--size", "full")
    assert name in message and says in message


def test_python_without_docstrings_is_refused() -> None:
    told = "from lm_audit.plugin.options.environment import refuse_environment; refuse_environment()"
    words = [sys.executable, "-OO", "-c", told]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "harness")}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1 and "UsageError: python -OO (PYTHONOPTIMIZE=2)" in done.stderr


OF_AUDITS: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
    ("privacy", ("--manifest", "m.jsonl"), ("--manifest m.jsonl does nothing without --stages",)),
    ("privacy", ("--stages", "base=tiny"), ("--manifest FILE",)),
    ("privacy", ("--stages", "base=tiny", "--manifest", "absent"), ("--manifest absent", "no such file")),
    ("privacy", ("--stages", "base=tiny", "--manifest", "/dev/zero"), ("--manifest /dev/zero", "pipe or a device")),
    ("privacy", ("--extraction-manifest", "."), ("--extraction-manifest .", "is a folder")),
    ("privacy", ("--stages", "bas=tiny", "--manifest", "pytest.ini"), ("unknown stage 'bas'",)),
    ("privacy", ("--stages", "base=tiny", "--manifest", "pytest.ini"), ("pytest.ini, row 1",)),
    ("needle", ("--needle-preset", "niah_singel_1"), ("'niah_singel_1'", "did you mean 'niah_single_1'")),
    ("needle", ("--needle-preset", "niah_single_1", "--needle-preset", "niah_single_1"), ("given twice",)),
    ("needle", ("--needle-lengths", "0"), ("--needle-lengths '0'",)),
    ("needle", ("--needle-lengths", "512,512"), ("512 is there twice",)),
    ("needle", ("--needle-lengths", "512,nan"), ("--needle-lengths '512,nan'",)),
    ("needle", ("--needle-haystack", "absent.txt"), ("--needle-haystack absent.txt", "does not exist")),
    ("needle", ("--needle-haystack", "/dev/null"), ("--needle-haystack: /dev/null", "a pipe or a device")),
    (
        "needle",
        ("--needle-haystack", "pytest.ini", "--needle-preset", "niah_single_1"),
        ("--needle-haystack pytest.ini does nothing",),
    ),
    ("needle", ("--needle-precision", "0.1"), ("--needle-precision 0.1 does nothing without --adaptive",)),
    ("needle", ("--needle-folder", "absent"), ("absent", "length_*")),
    ("needle", ("--needle-folder", LONG), ("nnn", "length_*")),
    ("needle", ("--needle-folder", ".", "--needle-windows", "shared"), ("--needle-windows", "--needle-folder")),
    ("needle", ("--needle-folder", ".", "--needle-language", "zh"), ("--needle-language", "--needle-folder")),
    ("needle", ("--needle-folder", ".", "--needle-samples", "3"), ("--needle-samples", "--needle-folder")),
    ("needle", ("--chat", "on", "--needle-template", "base"), ("--needle-template",)),
    ("needle", ("--needle-template", "chta"), ("--needle-template", "'chta'", "{task_template} once")),
    ("needle", ("--needle-template", "{task_template} {task_template}"), ("{task_template} once",)),
    ("needle", ("--needle-haystack", "blank.txt"), ("blank.txt", "holds no text")),
    ("leakage", ("--dtype", ""), ("--dtype",)),
    ("leakage", ("--ray-workers", "\u0663"), ("--ray-workers",)),
    ("leakage", ("--cpus-per-worker", "9" * 400), ("--cpus-per-worker",)),
    ("leakage", ("--gpus-per-worker", "1_0"), ("--gpus-per-worker",)),
    ("leakage", ("--ray-timeout", "1e400"), ("--ray-timeout",)),
    ("faithfulness", ("--attribution-method", "flash_trace"), ("'flash_trace'", "did you mean 'flashtrace'")),
    ("faithfulness", ("--attribution-method", "ifr", "--attribution-method", "ifr"), ("ifr is given twice",)),
    (
        "faithfulness",
        ("--attribution-method", "attnlrp", "--attribution-hops", "7"),
        ("--attribution-hops 7", "attnlrp"),
    ),
    ("faithfulness", ("--faithfulness-samples", "absent.jsonl"), ("absent.jsonl", "no such file")),
    ("faithfulness", ("--chat", "off", "--faithfulness-chat"), ("--faithfulness-chat",)),
    ("leakage", ("--chat", "on", "--leakage-mode", "raw"), ("--leakage-mode",)),
    ("bias", ("--chat", "on", "--bias-mode", "raw"), ("--bias-mode",)),
    ("leakage", ("--benchmark", "absent.csv"), ("absent.csv", "no such file")),
    ("leakage", ("--benchmark", LONG), ("nnn",)),
    ("leakage", ("--leakage-columns", "quest=Q"), ("column mapping 'quest=Q'",)),
    ("leakage", ("--leakage-clean", "absent.csv"), ("absent.csv",)),
    ("bias", ("--bias-grid", "absent.toml"), ("absent.toml", "no such file")),
    ("bias", ("--data", "bbq=absent.jsonl"), ("absent.jsonl", "no such file")),
]


@pytest.mark.parametrize(("audit", "arguments", "fragments"), OF_AUDITS, ids=lambda value: ascii(value)[:40])
def test_options_of_audits(
    configure: Configure, audit: str, arguments: tuple[str, ...], fragments: tuple[str, ...]
) -> None:
    message = refusal(configure, audit, *arguments)
    for fragment in fragments:
        assert fragment in message, message


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ('[bias.gap]\nmax = 1\nmodels = ["candidat"]\n', ("'candidat'", "did you mean 'candidate'", "[bias.gap]")),
        ('[bias.gap]\nmax = 1\nmodels = ["candidate", "other"]\n', ("'other'",)),
        ("[bias.gap]\nmax = nan\n", ("max = nan",)),
        ("[bias.gap]\nmax = inf\n", ("max = inf",)),
        ("[bias.gap]\nmax = true\n", ("max = True",)),
        ("[bias.gap]\nmax = 1\nn_min = 0\n", ("n_min = 0",)),
        ("[bias.gap]\nmax = 1\nmax = 2\n", ("is not TOML",)),
        ("[bais.gap]\nmax = 1\n", ("'bais'", "'bias'")),
        ("max = 1\n", ("max = 1",)),
        ("", ("no gate",)),
        ("[bias.gap]\nmax = " + "9" * 5000, ("digits",)),
        ("a = " + "[" * 5000, ("nested",)),
    ],
    ids=range(12),
)
def test_gates(configure: Configure, tmp_path: Path, text: str, fragments: tuple[str, ...]) -> None:
    (tmp_path / "gates.toml").write_text(text)
    message = refusal(configure, None, "--model", "candidate=tiny", "--gates", "gates.toml")
    for fragment in ("gates.toml", *fragments):
        assert fragment in message, message


@pytest.mark.parametrize(
    ("arguments", "selected", "fragments"),
    [
        (("--leakage-limit", "5"), {"bias"}, ("--leakage-limit does nothing", "leakage")),
        (("--needle-samples", "5"), {"bias", None}, ("--needle-samples does nothing", "needle")),
        (("--manifest", "m.jsonl"), {"bias"}, ("--manifest does nothing", "privacy")),
        (("--bias-margin", "0.25"), {"needle"}, ("--bias-margin does nothing", "bias")),
        (("--data", "bbq=x.jsonl"), {"needle"}, ("--data bbq", "bias")),
        (("--data", "mine=x.jsonl"), {"bias"}, ("--data mine", "no audit here knows")),
        (("--undecided", "fail"), {"bias"}, ("--undecided does nothing without --gates",)),
        (("--report-only",), {"bias"}, ("--report-only does nothing without --gates",)),
        (("--concurrency", "3"), {"bias"}, ("--concurrency does nothing: no model of this run is served",)),
        (("--max-tokens-spent", "3"), {"bias"}, ("--max-tokens-spent does nothing",)),
        (("--allow-insecure",), {"bias"}, ("--allow-insecure does nothing",)),
        (("--gpus-per-worker", "2"), {"bias"}, ("--gpus-per-worker does nothing without --ray",)),
        (("--ray-ship", "docs"), {"bias"}, ("--ray-ship does nothing without --ray",)),
    ],
)
def test_options_without_effect(
    configure: Configure, arguments: tuple[str, ...], selected: set[str | None], fragments: tuple[str, ...]
) -> None:
    config = configure(*arguments)
    [line] = without_effect(config, audit_session(config).options, selected)
    assert all(fragment in line for fragment in fragments)


def test_options_of_what_runs_are_not_warned_of(configure: Configure) -> None:
    words = ("--leakage-limit", "5", "--data", "bbq=x.jsonl", "--needle-samples", "3", "--bias-margin", "0.25")
    config = configure(*words)
    assert without_effect(config, audit_session(config).options, {"bias", "leakage", "needle"}) == []


def test_an_exporter_that_is_not_installed(configure: Configure) -> None:
    absent = [name for name in ("mlflow", "wandb") if importlib.util.find_spec(name) is None]
    if not absent:
        pytest.skip("both libraries are installed")
    assert f"--export {absent[0]}: the {absent[0]} exporter needs its library" in refusal(
        configure, None, "--export", absent[0]
    )


def hostile_files(folder: Path) -> dict[str, Path]:
    """What a name may turn out to be."""
    files = {
        "absent": folder / "absent",
        "folder": folder / "folder",
        "pipe": folder / "pipe",
        "device": Path("/dev/zero"),
        "long": folder / LONG,
        "zip": folder / "zip.jsonl",
        "utf32": folder / "utf32.jsonl",
        "utf16": folder / "utf16.jsonl",
        "latin": folder / "latin.jsonl",
        "deep": folder / "deep.jsonl",
        "digits": folder / "digits.jsonl",
    }
    files["folder"].mkdir()
    os.mkfifo(files["pipe"])
    files["zip"].write_bytes(b"PK\x03\x04" + b"\0" * 30)
    files["utf32"].write_bytes("text".encode("utf-32"))
    files["utf16"].write_bytes("text".encode("utf-16-le"))
    files["latin"].write_bytes("été, à la plage".encode("latin-1"))
    files["deep"].write_bytes(b'{"prompt": ' + b"[" * 50_000)
    files["digits"].write_bytes(b'{"prompt": ' + b"9" * 5_000 + b"}")
    return files


@pytest.mark.parametrize(
    ("audit", "option"),
    [
        ("bias", "--bias-grid"),
        ("bias", "--data=crows_pairs="),
        ("bias", "--data=stereoset="),
        ("bias", "--data=bbq="),
        ("leakage", "--benchmark"),
        ("leakage", "--leakage-clean"),
        ("faithfulness", "--faithfulness-samples"),
        (None, "--gates"),
    ],
)
def test_files_that_options_name(configure: Configure, tmp_path: Path, audit: str | None, option: str) -> None:
    for kind, path in hostile_files(tmp_path).items():
        # The ending says how a benchmark is read.
        named = (
            path.with_name(f"{path.name}.jsonl")
            if kind in ("zip", "utf32", "utf16", "latin", "deep", "digits")
            else path
        )
        if named != path:
            path.rename(named)
        words = (f"{option}{named}",) if option.endswith("=") else (option, str(named))
        message = refusal(configure, audit, *words)
        assert str(named)[:80] in message, (kind, message)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--gates", "gates.toml", "--model", "tiny"), "did you mean 'tiny'?"),
        pytest.param(("--data", "BBQ=x"), "looks like 'bbq'", marks=pytest.mark.slow),
        pytest.param(("--needle-precision", "0.1"), "does nothing without --adaptive", marks=pytest.mark.slow),
    ],
)
def test_a_call_of_pytest_says_it_without_a_traceback(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    write_project(tmp_path)
    (tmp_path / "gates.toml").write_text('[needle.accuracy]\nmin = 0.5\nmodels = ["tinny"]\n')
    where = ("-c", "pytest.ini", "--rootdir", str(tmp_path), str(REPOSITORY / "evals" / "test_needle.py"))
    done = run_pytest(tmp_path, *where, *words)
    assert done.code in (2, 4)
    assert says in done.output and "Traceback" not in done.output
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"text": "One."}\n{"text": "Two."}\n', "its lines are JSON objects"),
        ('\n  {"prompt": {"a": [1]}}', "its lines are JSON objects"),
        ("<!DOCTYPE html>\n<p>One.</p>", "is a page"),
        ('<?xml version="1.0"?><a>One.</a>', "is a page"),
        ("{One} of them.\nTwo.", None),
        ("<One> said: two.", None),
    ],
)
def test_rows_and_pages_that_are_called_text_are_told(
    configure: Configure, tmp_path: Path, content: str, told: str | None
) -> None:
    for name in ("given.txt", "given"):
        (tmp_path / name).write_text(content + "\nand words without end" * 60, encoding="utf-8")
        (tmp_path / "other.txt").write_text("some other words " * 600, encoding="utf-8")
        calls = {
            "needle": ("--needle-haystack", name),
            "privacy": ("--member-texts", name, "--held-out-texts", "other.txt"),
        }
        for audit, words in calls.items():
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                options = audit_session(configure(*words)).options
                with suppress(DataError):
                    collect(audit, options)
            found = [str(one.message) for one in heard if isinstance(one.message, DataWarning)]
            assert any(told in one and name in one for one in found) if told else not found


def test_too_few_texts_of_a_side_are_refused_before_the_model(configure: Configure, tmp_path: Path) -> None:
    rows = [f"Text {number} of several." for number in range(4)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))
    (tmp_path / "out.jsonl").write_text('{"text": "Another one."}\n' * 3)
    message = refusal(configure, "privacy", "--member-texts", "in.jsonl", "--held-out-texts", "out.jsonl")
    assert "in.jsonl and out.jsonl: 4 member texts and 1 held-out ones; at least 2 of each are needed" in message


BEYOND = {
    "test_membership_scores": ("privacy", ("--member-texts", "in.jsonl", "--held-out-texts", "out.jsonl")),
    "test_generated_extraction": ("privacy", ("--extraction-manifest", "manifest.jsonl")),
    "test_row_order": ("leakage", ("--benchmark", "bench.jsonl")),
    "test_method": ("faithfulness", ("--faithfulness-samples", "samples.jsonl")),
    "test_refusal": ("bias", ("--bias-requests", "requests.jsonl")),
    "test_counterfactual_swap": ("bias", ("--bias-swaps", "swaps.jsonl")),
    "test_counterfactual_continuation": ("bias", ("--bias-swaps", "swaps.jsonl")),
    "test_preference_grid": ("bias", ("--bias-grid", "grid.toml")),
}


@pytest.mark.parametrize("test", BEYOND)
def test_a_text_beyond_the_window_is_named_by_the_tokenizer_alone(
    configure: Configure, tmp_path: Path, test: str
) -> None:
    short, long = "A short text of its own, number {}.", "The rain fell on the roof. " * 300
    rows = [short.format(number) for number in range(5)] + [long]
    made: dict[str, list[dict[str, Any]]] = {
        "in": [{"text": row} for row in rows],
        "out": [{"text": f"Not {row}"} for row in rows[:-1]],
        "samples": [{"id": "long", "prompt": long, "generation": "Rain."}],
        "requests": [{"text": f"{row} Write to a {{group}} about it."} for row in rows],
        "swaps": [{"text": f"{row} He spoke to the man. | It was late."} for row in rows],
        "bench": [{"question": rows[k], "A": f"yes {k}", "B": "no", "answer": "AB"[k % 2]} for k in (3, 0, 1, 5, 4, 2)],
        "manifest": [
            {"kind": "manifest", "schema": 1},
            *(
                {"id": f"c-{k}", "text": f"{row} It is Q{k}X.", "secret": f"Q{k}X", "role": role, "repetitions": times}
                for k, row in enumerate(rows)
                for role, times in [(("member", 4), ("control", 0))[k % 2]]
            ),
        ],
    }
    for name, records in made.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    grid = (REPOSITORY / "fixtures" / "bias" / "preference_en.toml").read_text(encoding="utf-8")
    (tmp_path / "grid.toml").write_text(grid.replace('"The {group} is",', f'"{long}The {{group}} is",'))
    audit, words = BEYOND[test]
    session = audit_session(configure("--model", "tiny", *words))
    tokenizer: Any = load_tokenizer("tiny")
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    source = source_of(getattr(suite(audit), test))
    assert source is not None
    cases = [case for case in source.cases(session.options) if case.skip is None]
    with pytest.raises(ContextError, match=r"(The rain|sample long|row 4 of bench).* needs \d{4,} tokens, and model"):
        for case in cases:
            check_case(session, Selection(case, session.options.models[0], "cpu", source=source), tokenizer)


def test_of_a_book_the_beginning_alone_is_read_to_refuse_it(configure: Configure) -> None:
    """A text of 30 MB took half a minute and gigabytes before it was refused."""
    read: list[int] = []

    class Counting:
        def __call__(self, text: str) -> Any:
            read.append(len(text))
            return SimpleNamespace(input_ids=text.split())

    session = audit_session(configure("--model", "tiny"))
    window = known_context(session, session.options.models[0])
    assert window is not None
    texts = {"book": "word " * 10**6, "spaces": " " * 40 * window + "word", "page": "word " * 9}
    for name, refused in (("page", False), ("spaces", False), ("book", True)):
        source = CaseSource([], lambda case, tokenizer, options, name=name: [(name, texts[name])])
        selection = Selection(Case("x"), session.options.models[0], "cpu", source=source)
        with pytest.raises(ContextError, match="book needs") if refused else nullcontext():
            check_case(session, selection, cast(Any, Counting()))
    assert read == [len(texts["page"]), 16 * window, len(texts["spaces"]), 16 * window]


def test_json_rows_hold_their_places(tmp_path: Path) -> None:
    """One unusable line among good ones is named by its number, in every set of JSON lines alike."""
    from lm_audit.audits.bias.benchmarks.rows import load_rows
    from lm_audit.audits.faithfulness.passage.user_samples import read_samples
    from lm_audit.audits.leakage import load_benchmark
    from lm_audit.audits.privacy.data.corpus import read_texts

    readers: dict[str, tuple[Callable[[Path], Any], dict[str, Any]]] = {
        "leakage": (load_benchmark, {"question": "q", "choices": ["a", "b"], "answer": 0}),
        "bias": (
            lambda path: load_rows(path, "stereoset"),
            {"target": "a", "bias_type": "b", "context": "c", "sentences": []},
        ),
        "faithfulness": (read_samples, {"prompt": "p"}),
        "privacy": (read_texts, {"text": "t"}),
    }
    for bad in ("{", "[1]", '{"x": Infinity}', '{"x": "\\ud800"}', '{"x": 1, "x": 2}', '{"x": 1e999}', "9" * 5000):
        for name, (read, good) in readers.items():
            path = tmp_path / f"{name}.jsonl"
            path.write_text(f"{json.dumps(good)}\r\n\n{bad}\n")
            with pytest.raises(HarnessError) as caught:
                read(path)
            assert f"{path}, row 3" in str(caught.value), (name, bad)


def test_a_message_is_never_endless(tmp_path: Path) -> None:
    from lm_audit.audits.leakage import load_benchmark

    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"column{k}" for k in range(10_000)) + "\n" + ",".join("x" * 10_000) + "\n")
    with pytest.raises(HarnessError) as caught:
        load_benchmark(path)
    message = str(caught.value)
    assert len(message) < 6000 and "wide.csv: has no column for question" in message and "column9999" in message


def test_every_line_of_json_may_hold_other_line_ends(tmp_path: Path) -> None:
    from lm_audit.audits.faithfulness.passage.user_samples import read_samples
    from lm_audit.audits.leakage import load_benchmark
    from lm_audit.audits.privacy.data.corpus import read_texts

    odd = "x\u2028y\u2029z\u0085w"
    path = tmp_path / "x.jsonl"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        path.write_bytes((json.dumps({"prompt": odd}, ensure_ascii=False) + "\r\n").encode(encoding))
        assert read_samples(path)[0].prompt == odd
        path.write_bytes((json.dumps({"text": odd}, ensure_ascii=False) + "\r\n").encode(encoding))
        assert read_texts(path) == [odd]
        row = {"question": odd, "choices": ["a", "b"], "answer": 0}
        path.write_bytes((json.dumps(row, ensure_ascii=False) + "\r\n").encode(encoding))
        assert load_benchmark(path).items[0].question == odd


def test_chinese_in_gbk_is_told(tmp_path: Path) -> None:
    from lm_audit.audits.faithfulness.passage.user_samples import read_samples

    path = tmp_path / "x.jsonl"
    path.write_bytes(json.dumps({"prompt": "下列属于水果的是：苹果"}, ensure_ascii=False).encode("gbk"))
    with pytest.warns(DataWarning, match="GB18030"):
        assert read_samples(path)[0].prompt == "下列属于水果的是：苹果"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--target-length", "0"), "'0' is not a whole number"),
        (("--num-samples", "1e3"), "'1e3' is not a whole number"),
        (("--num-positions", "0"), "'0' is not a whole number"),
        (("--workers", "0"), "'0' is not a whole number from 1 to 1024"),
        (("--random-seed", "-1"), "'-1' is not a whole number"),
        (("--tokens-to-generate", "nan"), "'nan' is not a whole number"),
        (("--num-needle-k", "9" * 5000), "is not a whole number"),
        (("--preset", "niah_singel_1"), "did you mean 'niah_single_1'"),
        (("--preset", ""), "preset '' is unknown"),
        (("--save-dir", "~nosuchuser/grid"), "'~nosuchuser/grid': there is no such home"),
        (("--start-length", "5000"), "start length 5000 is above the target length"),
        (("--save-dir", LONG), "nnn"),
        (("--haystack", "absent.txt"), "absent.txt"),
    ],
)
def test_the_command_that_builds_needles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    from lm_audit.cli import main

    usual = {"--target-length": "600", "--length-interval": "600", "--num-positions": "1", "--num-samples": "1"}
    given = usual | {"--save-dir": str(tmp_path / "grid"), "--tokenizer": "tiny", "--workers": "1", words[0]: words[1]}
    try:
        code = main(["needle", "build", *(word for pair in given.items() for word in pair)])
    except SystemExit as stopped:  # argparse ends so
        code = int(str(stopped.code))
    assert code == 2 and says in capsys.readouterr().err
    assert not list(tmp_path.glob("grid/length_*"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("report", "latest", "--reports=--"), "--reports=--: names nothing"),
        (("report", "latest", "--reports="), "'' names no file or folder"),
        (("report", "latest", "--reports=s3://bucket/reports"), "is an address"),
        (("merge", "x", "--output= "), "' ' names no file or folder"),
        (("report", "latest", "--reports=~nosuchuser/r"), "there is no such home"),
        (("privacy", "canaries", "--smoke", "--output=~nosuchuser/x"), "there is no such home"),
        (("compare", "x", "y", "--html="), "'' names no file or folder"),
        (("allure", "x", "--allure=--"), "--allure=--: names nothing"),
        (("privacy", "canaries", "--smoke", "--output="), "'' names no file or folder"),
        (("privacy", "canaries", "--smoke", "--sft=--"), "--sft=--: names nothing"),
        (("privacy", "canaries", "--smoke", "--output=https://host/x"), "is an address"),
        (("needle", "score", "x", "y", "--json=--"), "--json=--: names nothing"),
    ],
)
def test_commands_are_told_of_paths_that_name_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    says: str,
) -> None:
    from lm_audit.cli import main

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("compare", "x", "y", "--html", "a.file/page.html"), "--html 'a.file': 'a.file' is no folder"),
        (("compare", "x", "y", "--html", "/proc/absent/page.html"), "--html '/proc/absent': cannot be written"),
        (("merge", "x", "-o", "a.file/run"), "a.file' is no folder"),
        (("merge", "x", "-o", "/proc/absent"), "-o '/proc': cannot be written"),
        (("allure", "x", "--config", "absent.json"), "--config absent.json: there is no such file"),
    ],
)
def test_commands_name_the_option_of_a_path_that_cannot_be_used(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    says: str,
) -> None:
    from lm_audit.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.file").write_text("")
    assert main(words) == 2
    assert says in capsys.readouterr().err


def test_a_hub_id_that_is_not_here_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lm_audit.cli import main

    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert main(["models", "some/model"]) == 0
    assert capsys.readouterr().out.startswith("some/model is not on this machine")


def test_sets_without_a_chat_form_say_so_where_one_is_asked_for() -> None:
    say = suite("bias").without_chat_form
    assert "--chat on has no effect here" in say(RunOptions(chat="on"))[0]
    assert say(RunOptions(chat="off")) == say(RunOptions()) == []
