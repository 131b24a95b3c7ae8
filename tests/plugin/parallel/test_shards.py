"""--shard i/n and lm-audit merge: the parts make the whole, and what does not belong together is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lm_audit.cli import main
from lm_audit.errors import UsageError
from lm_audit.plugin.audit_cases.grouping import group_of
from lm_audit.runstore.merging.merge import merge_runs
from lm_audit.runstore.run import read_run
from lm_audit.runstore.run_record import text_of, without_checksum
from tests.plugin.acknowledging_audit import audit_source, evidence_of, only_run
from tests.plugin.toy_run import run_pytest, write_project

CASES = 10


def run_shard(folder: Path, shard: str | None, name: str, *arguments: str) -> Path:
    """The folder of the run of one shard."""
    words = ("--shard", shard) if shard else ()
    outcome = run_pytest(folder, *words, "--reports", name, *arguments, TOY_PAUSE="0")
    assert outcome.code == 0, outcome.output
    (ledger,) = (folder / name).glob("*/ledger")
    return ledger.parent


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of one small audit: the whole, its three shards (one with workers), shards of another seed and cut."""
    folder = write_project(tmp_path_factory.mktemp("shards"), test_toy=audit_source(CASES))
    return {
        "whole": run_shard(folder, None, "whole"),
        "1/3": run_shard(folder, "1/3", "one"),
        "2/3": run_shard(folder, "2/3", "two", "-n", "2"),
        "3/3": run_shard(folder, "3/3", "three"),
        "seed": run_shard(folder, "2/3", "seed", "--seed", "5"),
        "2/2": run_shard(folder, "2/2", "half"),
        "selection": run_shard(folder, "2/3", "selection", "-k", "not c00"),
    }


def test_shards_part_the_cases(runs: dict[str, Path]) -> None:
    whole = set(read_run(runs["whole"]).planned)
    parts = [set(read_run(runs[f"{index}/3"]).planned) for index in (1, 2, 3)]
    assert len(whole) == CASES
    assert set.union(*parts) == whole and sum(map(len, parts)) == CASES
    assert all(parts)


def test_merged_shards_are_the_whole(runs: dict[str, Path], tmp_path: Path) -> None:
    merged = merge_runs([runs["3/3"], runs["1/3"], runs["2/3"]], tmp_path / "merged")
    assert (merged.cases, merged.missing_shards) == (CASES, ())
    run = read_run(tmp_path / "merged")
    assert evidence_of(run) == evidence_of(read_run(runs["whole"]))
    assert run.finished and not run.missing and not run.damaged
    assert run.metadata["merged_from"] == [runs[name].name for name in ("3/3", "1/3", "2/3")]
    assert set(run.planned) == set(read_run(runs["whole"]).planned)


def test_merging_in_steps_gives_the_same(runs: dict[str, Path], tmp_path: Path) -> None:
    merge_runs([runs["1/3"], runs["3/3"]], tmp_path / "first", partial=True)
    merged = merge_runs([tmp_path / "first", runs["2/3"]], tmp_path / "second")
    assert merged.missing_shards == ()
    assert evidence_of(read_run(tmp_path / "second")) == evidence_of(read_run(runs["whole"]))


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["1/3", "1/3"], "the same run"),
        (["1/3", "seed"], r"option --seed differs: 0 and 5"),
        (["1/3", "2/2"], "parts of different divisions, by 3 and by 2"),
        (["1/3", "selection"], r"different selections \(10 and 9 cases\)"),
        (["1/3", "whole"], "one was run with --shard and the other was not"),
        (["1/3", "2/3"], r"1 of 3 shards are missing: 3/3"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    runs: dict[str, Path], tmp_path: Path, names: list[str], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        merge_runs([runs[name] for name in names], tmp_path / "merged")
    assert not list(tmp_path.iterdir())


def test_overlapping_runs_are_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["1/3"], tmp_path / "again")
    with pytest.raises(UsageError, match=r"they overlap: both hold test_toy.py::test_free\[c\d\d\] and"):
        merge_runs([runs["1/3"], tmp_path / "again"], tmp_path / "merged")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"versions": {"torch": "1.0"}}, "version of torch differs"),
        ({"versions": {"scipy": "0.1"}}, "version of scipy differs"),
        ({"code_version": "abc"}, "code_version differs: '[0-9a-f]{16}' and 'abc'"),
        ({"git_commit": "abc"}, "git_commit differs: None and 'abc'"),
        ({"options": {"models": {"smollm2": "other"}}}, "option --model smollm2 differs: 'smollm2' and 'other'"),
        ({"options": {"size": "full"}}, "option --size differs: 'smoke' and 'full'"),
        ({"options": {"limit": 3}}, "option --limit differs: None and 3"),
        ({"options": {"chat": "on"}}, "option --chat differs: 'auto' and 'on'"),
        ({"options": {"chat_args": {"enable_thinking": False}}}, r"option --chat-args differs: \{\} and .*False"),
        ({"options": {"thinking_tokens": 0}}, "option --thinking-tokens differs: 1024 and 0"),
        ({"options": {"endpoint": {"tokenizers": {"m": "x"}}}}, "option --tokenizer m differs: None and 'x'"),
        ({"options": {"inputs": {"--data bbq b.csv": "1"}}}, "content of --data bbq b.csv differs: None and '1'"),
        ({"options": {"audit": {"bias_boundary": "ws"}}}, "option --bias-boundary differs: 'none' and 'ws'"),
    ],
)
def test_foreign_runs_are_refused(
    runs: dict[str, Path],
    tmp_path: Path,
    change: dict[str, dict[str, str]] | dict[str, str] | dict[str, dict[str, dict[str, str]]],
    reason: str,
) -> None:
    foreign = tmp_path / "foreign"
    shutil.copytree(runs["2/3"], foreign)
    record, _ = without_checksum(json.loads((foreign / "run.json").read_text(encoding="utf-8")))
    for key, value in change.items():
        record[key] = record[key] | value if isinstance(value, dict) else value
    (foreign / "run.json").write_text(text_of(record), encoding="utf-8")
    with pytest.raises(UsageError, match=reason):
        merge_runs([runs["1/3"], foreign], tmp_path / "merged")


def test_a_merge_never_writes_over_a_run(runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["1/3"], tmp_path / "taken")
    with pytest.raises(UsageError, match="it exists already"):
        merge_runs([runs["2/3"]], tmp_path / "taken")


def test_an_unfinished_part_leaves_the_merged_run_unfinished(runs: dict[str, Path], tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    shutil.copytree(runs["2/3"], killed)
    for ledger in (killed / "ledger").glob("*.jsonl"):
        lines = [line for line in ledger.read_text(encoding="ascii").splitlines(True) if '"run_end"' not in line]
        ledger.write_text("".join(lines), encoding="ascii")
    merge_runs([runs["1/3"], killed, runs["3/3"]], tmp_path / "merged")
    assert not read_run(tmp_path / "merged").finished


def test_command(runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "merged"
    assert main(["merge", *(str(runs[f"{index}/3"]) for index in (1, 2, 3)), "-o", str(out)]) == 0
    assert f"merged 3 runs, {CASES} cases: {out}" in capsys.readouterr().out
    assert main(["merge", str(runs["1/3"]), str(runs["2/3"]), "-o", str(tmp_path / "other")]) == 2
    assert "1 of 3 shards are missing: 3/3; run them, or leave them out with --partial" in capsys.readouterr().err
    assert main(["merge", str(runs["1/3"]), "-o", str(tmp_path / "other"), "--partial"]) == 0
    assert "warning: without shards 2, 3" in capsys.readouterr().err


def test_more_shards_than_cases(tmp_path: Path) -> None:
    folder = write_project(tmp_path, test_toy=audit_source(1))
    runs = []
    for index in (1, 2, 3):
        outcome = run_pytest(folder, "--shard", f"{index}/3", "--reports", f"r{index}", "-n", str(index - 1))
        assert outcome.code == 0, outcome.output
        runs += [ledger.parent for ledger in (folder / f"r{index}").glob("*/ledger")]
    assert len(runs) == 1
    assert merge_runs(runs, tmp_path / "merged").missing_shards == ()


def test_a_selection_without_cases_is_still_an_error(tmp_path: Path) -> None:
    folder = write_project(tmp_path, test_toy=audit_source(1))
    assert run_pytest(folder, "--shard", "1/2", "-k", "nothing").code == 5


@pytest.mark.parametrize("shard", ["0/3", "4/3", "two", "１/２"])
def test_a_shard_that_is_none_is_refused(tmp_path: Path, shard: str) -> None:
    outcome = run_pytest(write_project(tmp_path, test_toy=audit_source(1)), "--shard", shard)
    assert outcome.code == 4
    assert f"--shard '{shard}': write i/n with i from 1 to n, for example --shard 2/8" in outcome.output


def test_a_resumed_shard_stays_that_shard(tmp_path: Path) -> None:
    folder = write_project(tmp_path, test_toy=audit_source(4))
    run_shard(folder, "1/2", "reports")
    run = only_run(folder)
    again = run_pytest(folder, "--resume", run.run_id)
    assert again.code == 0 and again.counts["resumed"] == len(run.planned) < 4
    other = run_pytest(folder, "--resume", run.run_id, "--shard", "2/2")
    assert other.code == 4 and "the run that is resumed is shard 1/2" in other.output


def test_models_stay_together_in_shards(tmp_path: Path) -> None:
    folder = write_project(tmp_path, test_toy=audit_source(1, model_cases=4))
    models = [word for name in ("a", "b") for word in ("--model", f"{name}=tiny")]
    groups = []
    for index in (1, 2):
        listed = run_pytest(folder, "--shard", f"{index}/2", *models, "--device", "cpu", "--collect-only", "-q")
        ids = [line for line in listed.output.splitlines() if "::" in line]
        groups.append(sorted({group for case in ids if (group := group_of(case))}))
    assert sorted(groups) == [["a@cpu"], ["b@cpu"]]
