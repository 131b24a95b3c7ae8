"""``lm-audit privacy``: every step, restartable, and the whole chain."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lm_audit.audits.privacy.data.families import FAMILIES
from lm_audit.audits.privacy.stages.config import StagesConfig, smoke_config
from lm_audit.cli import main
from lm_audit.errors import DataError, UsageError


def steps(folder: Path, *names: str) -> list[int]:
    smoke = {"canaries": ["--smoke"]}
    return [main(["privacy", name, "--output", str(folder), *smoke.get(name, [])]) for name in names]


def test_steps_one_after_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "canaries.txt"
    assert main(["privacy", "canaries", "--smoke", "--output", str(tmp_path), "--text", str(text)]) == 0
    assert len(text.read_text().splitlines()) == 4
    first = (tmp_path / "manifest.jsonl").read_bytes()
    assert steps(tmp_path, "canaries", "corpus", "preferences") == [0, 0, 0]
    assert json.loads((tmp_path / "manifest.jsonl").read_text().splitlines()[0])["files"]
    assert first != (tmp_path / "manifest.jsonl").read_bytes()
    assert steps(tmp_path, "train", "audit", "attribute") == [0, 0, 0]
    assert "DPO_NoCanary_vs_WithCanary" in capsys.readouterr().out
    for name in ("privacy_audit_summary.csv", "attribution_summary.json", "run_metadata.jsonl", "evidence.json"):
        assert (tmp_path / name).is_file()
    kinds = [json.loads(line)["type"] for line in (tmp_path / "run_metadata.jsonl").read_text().splitlines()]
    assert kinds.count("canary_generation") == 2
    assert {"data_preparation", "sft_training", "dpo_training", "audit"} <= set(kinds)


def test_help_says_what_each_option_is_and_what_it_is_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["privacy", "canaries", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "--members MEMBERS, --num-canaries MEMBERS canaries that are trained on (15)" in told
    for name in FAMILIES:
        assert f" {name}" in told[told.index("--family FAMILY form") :].partition("--members")[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["canaries", "--num-canaries", "0"], "at least 1"),
        (["canaries", "--family", "nope"], "unknown canary family"),
        (["canaries", "--config", "none.json"], "cannot be read"),
        (["canaries", "--repetitions", "one"], "whole numbers"),
        (["preferences", "--no-canary", "--with-canary"], "exclude each other"),
        (["train", "--smoke", "--sft", "speed=3"], "KEY=VALUE with one of"),
        (["train", "--smoke", "--sft", "lr=fast"], "'fast' is not a number"),
        (["corpus", "--smoke", "--members", "9"], "above the limit of 1%"),
        (["attribute"], "lm-audit privacy audit"),
        (["train", "--smoke", "--sft", "lr=nan"], "'nan' is not a number"),
        (["train", "--smoke", "--sft", "epochs=0"], "sft.epochs must be at least 1"),
        (["train", "--smoke", "--sft", "lr=1,lr=2"], "lr is given twice"),
        (["train", "--smoke", "--sft", ""], "KEY=VALUE with one of"),
        (["train", "--smoke", "--beta", "nan"], "'nan' is not a number above 0"),
        (["train", "--smoke", "--epsilon", "0"], "'0' is not a number above 0"),
        (["train", "--smoke", "--epsilon=-inf"], "is not a number above 0"),
        (["train", "--seed", "99999999999999"], "is not a whole number from 0 to 4294967295"),
        (["train", "--members", "9" * 5000], "is not a whole number"),
        (["train", "--members", "1000000000000"], "members must be at least 1 and at most"),
        (["train", "--device", "gpu"], "unknown device 'gpu'"),
        (["train", "--model", ""], "the value is empty"),
        (["train", "--config", "c.json", "--smoke"], "--config and --smoke"),
        (["run", "--smoke", "--seeds", "1,1"], "1 is given twice"),
        (["run", "--smoke", "--seeds", "1,-2"], "'-2' is not a whole number"),
        (["audit", "--samples", "-1"], "'-1' is not a whole number"),
        (["audit", "--stages", "base=a"], "needs --manifest"),
    ],
)
def test_errors_name_what_was_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    try:
        code: object = main(["privacy", *arguments, "--output", str(tmp_path)])
    except SystemExit as stopped:  # argparse ends so
        code = stopped.code
    assert code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "stages").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": 10**6}, "members must be at least 1 and at most 100000"),
        ({"controls": 10**8}, "controls must be at least 0 and at most 100000"),
        ({"repetitions": [10**7]}, "rows, above"),
        ({"repetitions": [4, 4]}, "holds 4 twice"),
        ({"members": 1}, "cannot be spread over 2 levels"),
        ({"documents_path": ""}, "names no file"),
        ({"documents_path": " "}, "names no file"),
        ({"documents_path": "."}, "names no file"),
        ({"documents_path": "a\0b"}, "names no file"),
        ({"documents_path": 3}, "documents_path must be the name of a file"),
        ({"beta": 1e300}, "beta must be a number above 0 and at most 1e+06"),
        ({"sft": {"epochs": 1, "lr": 1e300}}, "sft.lr"),
        ({"dpo": {"epochs": 1, "lr": 1e-4, "clip": 1e300}}, "dpo.clip"),
        ({"dpo": {"epochs": 1, "lr": 1e-4, "weight_decay": 1e300}}, "dpo.weight_decay"),
        ({"dp": {"epsilon": True}}, "epsilon"),
        ({"dp": {"epsilon": "1"}}, "epsilon"),
        ({"dp": {"epsilon": "nan"}}, "epsilon"),
        ({"dp": {"epsilon": 1, "max_grad_norm": 1e300}}, "max_grad_norm"),
        ({"tiny": {"epochs": 0}}, "tiny.epochs must be at least 1"),
        ({"tiny": {"epochs": "2"}}, "tiny.epochs"),
        ({"tiny": {"epochs": 0.5}}, "tiny.epochs"),
        ({"tiny": {"lr": 0}}, "tiny.lr must be a number above 0"),
        ({"tiny": {"lr": []}}, "tiny.lr"),
        ({"tiny": {"batch_size": -1}}, "tiny.batch_size"),
        ({"tiny": {"warmup_steps": None}}, "tiny.warmup_steps"),
        ({"tiny": {"version": "x"}}, "tiny.version"),
    ],
    ids=str,
)
def test_configs_that_cannot_be_meant(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        StagesConfig.from_json(smoke_config().to_json() | changes)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"members": 1, "repetitions": [16]},
        {"members": 1, "assignment": "coins"},
        {"members": 2},
        {"repetitions": [16, 1]},
        {"documents_path": "owner/name"},
        {"documents_path": "texts"},
        {"dp": {"epsilon": "inf"}},
        {"dp": {"epsilon": 3}},
        {"sft": {"epochs": 1, "lr": 10.0, "clip": 1e9, "weight_decay": 0.1}},
        {"tiny": {"epochs": 1, "lr": 0.01, "warmup_steps": 0}},
    ],
    ids=str,
)
def test_configs_near_them_that_can_be_meant(changes: dict[str, object]) -> None:
    config = StagesConfig.from_json(smoke_config().to_json() | changes)
    assert StagesConfig.from_json(config.to_json()) == config


def test_a_folder_keeps_its_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert steps(tmp_path, "canaries") == [0]
    assert main(["privacy", "corpus", "--output", str(tmp_path), "--members", "2"]) == 2
    assert "differs in members" in capsys.readouterr().err


def test_only_one_variant(tmp_path: Path) -> None:
    assert steps(tmp_path, "canaries", "corpus") == [0, 0]
    assert main(["privacy", "preferences", "--output", str(tmp_path), "--no-canary"]) == 0
    assert (tmp_path / "preferences_no_canary.jsonl").is_file()
    assert not (tmp_path / "preferences_with_canary.jsonl").exists()


def test_documents_that_cannot_be_read_are_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, says in (("absent", "no such file"), ("pipe", "a pipe or a device")):
        with pytest.raises(DataError, match=says):
            smoke_config(documents_path=tmp_path / name).inputs()
