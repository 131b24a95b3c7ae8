"""What travels to the workers of a cluster: only what the run needs, nothing secret, not too much."""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from lm_audit.errors import UsageError
from lm_audit.plugin.activation import AWAKE
from lm_audit.plugin.cluster.loop import _worker_options
from lm_audit.plugin.cluster.node.mirror import EndedCases
from lm_audit.plugin.cluster.node.scratch import PREFIX, Scratch
from lm_audit.plugin.cluster.node.session_process import moved_options
from lm_audit.plugin.cluster.orders import Order
from lm_audit.plugin.cluster.parcel import packing as parcels
from lm_audit.plugin.cluster.parcel.packing import pack
from lm_audit.plugin.cluster.parcel.project_files import project_files
from lm_audit.plugin.cluster.parcel.secret_files import what_secret
from lm_audit.plugin.cluster.start import _problem
from lm_audit.plugin.options.audit_options import audit_options
from lm_audit.plugin.options.model_choice import ModelChoice, parse_choice, spelt
from lm_audit.plugin.options.run_options import RunOptions, from_config
from lm_audit.shared.reached import sources

pytest_plugins = ("pytester",)

for module in AWAKE:  # pytester forgets what is imported within it, and numpy cannot be imported twice.
    import_module(module)

CASES = """
from pathlib import Path
import pytest
from helper import WORDS

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "bias"
pytestmark = pytest.mark.bias

def test_one(evidence):
    pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {
        "pytest.ini": "[pytest]\n", "conftest.py": "# empty", "helper.py": "import deeper\nWORDS = deeper.WORDS\n",
        "deeper.py": "WORDS = ()\n", "unused.py": "", "evals/test_toy.py": CASES, "evals/words.txt": "one",
        "evals/server.pem": "x", "fixtures/bias/grid.toml": "", "fixtures/needle/plans.toml": "",
        "fixtures/private.csv": "", "data/set.csv": "a,b\n", "data/.env": "TOKEN=1", "bias": "",
    }  # fmt: skip
    for name, text in files.items():
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(pytester.path)
    return pytester.path


def collected(pytester: pytest.Pytester, *words: str) -> tuple[pytest.Config, list[pytest.Item]]:
    items, _ = pytester.inline_genitems("-p", "no:cacheprovider", *words)
    return items[0].config, items


def names(pytester: pytest.Pytester, *words: str) -> set[str]:
    config, items = collected(pytester, *words)
    root = config.rootpath.resolve()
    return {path.relative_to(root).as_posix() for path in project_files(config, items, root)}


def test_only_what_the_run_needs_travels(pytester: pytest.Pytester, project: Path) -> None:
    needed = {"pytest.ini", "conftest.py", "helper.py", "deeper.py", "evals/test_toy.py", "evals/words.txt"}
    assert names(pytester) == needed | {"fixtures/bias/grid.toml"}


def test_code_that_names_no_part_of_the_fixtures_has_them_all(pytester: pytest.Pytester, project: Path) -> None:
    (project / "deeper.py").write_text("from pathlib import Path\nWORDS = list(Path('fixtures').rglob('*'))\n")
    assert {"fixtures/bias/grid.toml", "fixtures/needle/plans.toml", "fixtures/private.csv"} <= names(pytester)


def test_a_folder_is_shipped_without_its_secrets_or_not_at_all(pytester: pytest.Pytester, project: Path) -> None:
    with pytest.raises(UsageError, match=r"--ray-ship data would send .*\.env to every node.*keys or passwords"):
        names(pytester, "--lm-audit-ray-ship", "data")
    assert "data/set.csv" in names(pytester, "--lm-audit-ray-ship", "data/set.csv")


def packed(pytester: pytest.Pytester, folder: Path, **options: object) -> parcels.Parcel:
    config, items = collected(pytester)
    return pack(config, items, RunOptions(**options), folder)  # type: ignore[arg-type]


def test_what_options_name_travels_and_is_found_there(
    pytester: pytest.Pytester, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "more.csv").write_text("a", encoding="utf-8")
    for stage in ("base", "sft"):
        (project / stage).mkdir()
        (project / stage / "model.safetensors").write_bytes(b"weights")
    found = packed(
        pytester,
        project / "parcel",
        data={"near": "data/set.csv", "far": str(outside / "more.csv"), "hub": "org/name", "part": f"{outside}:a:b"},
        audit={"stages": "base=base,sft=sft", "needle_template": "bias", "benchmark": ["own=data/set.csv"]},
    )
    files = {path.relative_to(found.working).as_posix() for path in found.working.rglob("*") if path.is_file()}
    assert "data/set.csv" in files and "bias" not in files, "a word that happens to be a file's name is no file"
    assert not [name for name in files if "safetensors" in name]
    order = Order("w", "r", (), str(project), ".", None, {}, {
        "data": ["near=data/set.csv", f"far={outside / 'more.csv'}", "hub=org/name", f"part={outside}:a:b"],
        "stages": "base=base,sft=sft",
        "words": "bias",
    }, found.named)  # fmt: skip
    moved = moved_options(order, found.working)
    near, far, hub, part = moved["data"]
    travelled, _, names = part.removeprefix("part=").partition(":")
    assert names == "a:b" and (Path(travelled) / "more.csv").read_text(encoding="utf-8") == "a"
    assert (near, hub) == ("near=data/set.csv", "hub=org/name")
    assert Path(far.removeprefix("far=")).read_text(encoding="utf-8") == "a"
    assert moved["stages"] == f"base={project / 'base'},sft={project / 'sft'}", "models are looked for on each node"
    assert moved["words"] == "bias"


@pytest.mark.parametrize(
    "option",
    [
        "bias_grid",
        pytest.param("bias_requests", marks=pytest.mark.slow),
        pytest.param("bias_swaps", marks=pytest.mark.slow),
    ],
)
def test_a_list_that_would_stay_behind_is_refused(pytester: pytest.Pytester, project: Path, option: str) -> None:
    grid = project / "own.toml"
    grid.write_text('templates = ["a"]\ntexts = {from = "owner/name:x:y"}', encoding="utf-8")
    assert (packed(pytester, project / "parcel", audit={option: ["own.toml"]}).working / "own.toml").exists()
    grid.write_text('[[axes]]\nname = "job"\ngroups = {from = "data/set.csv", column = "a"}', encoding="utf-8")
    with pytest.raises(UsageError, match=r"own.toml takes a list from 'data/set.csv', a file that does not travel"):
        packed(pytester, project / "parcel2", audit={option: ["own.toml"]})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("id_ed25519", ""),
        ("notes.txt", "-----BEGIN OPENSSH PRIVATE KEY-----"),
        pytest.param(".netrc", "", marks=pytest.mark.slow),
        pytest.param("credentials.json", "", marks=pytest.mark.slow),
    ],
)
def test_no_option_sends_a_key(pytester: pytest.Pytester, project: Path, name: str, text: str) -> None:
    (project / "data" / name).write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=f"--data own data/{name} would send"):
        packed(pytester, project / "parcel", data={"own": f"data/{name}"})


@pytest.mark.parametrize("name", ["keys.csv", "secrets.jsonl", "tokens.txt", "manifest.jsonl", "environment.toml"])
def test_data_of_an_audit_is_no_key(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("a", encoding="utf-8")
    assert what_secret(tmp_path / name) is None


def test_too_much_is_told_before_it_is_copied(
    pytester: pytest.Pytester, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parcels, "LIMIT", 4 << 20)
    monkeypatch.setattr(parcels, "all_files", lambda folder: ())
    (project / "data" / "big.csv").write_bytes(b"0" * (5 << 20))
    with pytest.raises(UsageError, match=r"more than 4 MiB .*big\.csv \(5 MiB, of --data own data/big\.csv\)"):
        packed(pytester, project / "parcel", data={"own": "data/big.csv"})
    assert not (project / "parcel").exists()


def test_every_source_is_read_once(pytester: pytest.Pytester, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk from every imported module took minutes in a checkout, for each began anew."""
    for number in range(12):
        later = "".join(f"import chain{other}\n" for other in range(number + 1, 12))
        (project / f"chain{number}.py").write_text(later, encoding="utf-8")
    (project / "deeper.py").write_text("import chain0\nWORDS = ()\n", encoding="utf-8")
    config, items = collected(pytester)
    for number in reversed(range(12)):
        module = SimpleNamespace(__file__=str(project / f"chain{number}.py"))
        monkeypatch.setitem(sys.modules, f"chain{number}", module)
    read: Counter[bytes] = Counter()
    parse = ast.parse

    class Counting:
        def __getattr__(self, name: str) -> object:
            return getattr(ast, name)

        def parse(self, source: bytes) -> ast.Module:
            read[source] += 1
            return parse(source)

    monkeypatch.setattr(sources, "ast", Counting())
    project_files(config, items, config.rootpath.resolve())
    assert max(read.values()) == 1


def test_options_that_name_files_say_so() -> None:
    told = {option.flag for option in audit_options() if option.names}
    assert told >= {
        "--bias-grid", "--faithfulness-samples", "--benchmark", "--leakage-clean", "--needle-haystack",
        "--needle-folder", "--stages", "--extraction-manifest", "--manifest", "--member-texts", "--held-out-texts",
    }  # fmt: skip


@pytest.mark.parametrize("cut", range(1, 54, 6))
def test_the_end_of_a_case_is_seen_wherever_it_is_cut(cut: int) -> None:
    line = json.dumps({"kind": "case_end", "case_id": "x", "outcome": "passed"}, separators=(",", ":")).encode() + b"\n"
    ended = EndedCases()
    assert not ended.completed_by(("ledger/ray0-1.jsonl", 0, line[:cut]))
    assert not ended.completed_by(("rows/x.jsonl", 0, line))
    assert ended.completed_by(("ledger/ray0-1.jsonl", cut, line[cut:]))
    assert not ended.completed_by(("ledger/ray0-1.jsonl", len(line), b'{"kind":"metric"}\n'))


def test_what_a_killed_actor_left_is_removed_by_the_next(tmp_path: Path) -> None:
    alive = Scratch(tmp_path)
    left = tmp_path / f"{PREFIX}left"
    left.mkdir()
    (left / "lock").touch()
    (left / "rows").touch()
    other = tmp_path / "else"
    other.mkdir()
    later = Scratch(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([alive.path, later.path, other])
    later.remove()
    assert sorted(tmp_path.iterdir()) == sorted([alive.path, other])


@pytest.mark.parametrize(
    "text", ["tiny", "tiny:1", "org/name@refs/pr/3", "own=org/name", "openai:qwen:7b@http://localhost:1/v1", "a=b=c"]
)
def test_a_model_is_called_the_same_on_a_worker(text: str) -> None:
    choice = parse_choice(text)
    assert parse_choice(spelt(choice)) == choice


def test_a_folder_of_a_strange_name_is_called_the_same_on_a_worker(tmp_path: Path) -> None:
    for name in ("a:b", "a=b", "plain"):
        (tmp_path / name).mkdir()
        choice = parse_choice(str(tmp_path / name))
        assert parse_choice(spelt(choice)) == choice
    with pytest.raises(UsageError, match="give it a plain name, with --model NAME="):
        spelt(ModelChoice("a:b", str(tmp_path / "plain")))


def test_a_worker_without_the_caller_s_words_measures_the_same(pytester: pytest.Pytester, project: Path) -> None:
    """A resumed run has inherited what its words do not say: all of it must be among the options that are set."""
    words = (
        "--lm-audit-limit=3", "--lm-audit-seed=5", "--lm-audit-size=standard", "--lm-audit-dtype=bfloat16",
        "--lm-audit-batch-tokens=64", "--lm-audit-chat=on", "--lm-audit-thinking-tokens=9",
        "--lm-audit-device-map=auto", "--lm-audit-chat-args=a=1", "--lm-audit-model=small=tiny:3",
        "--lm-audit-packed-weights=off",
    )  # fmt: skip
    config = pytester.parseconfig(*words)
    options = from_config(config, ("cpu",))
    audit = SimpleNamespace(options=options)
    bare = pytester.parseconfig()
    for name, value in _worker_options(config, audit).items():  # type: ignore[arg-type]
        if hasattr(bare.option, name):
            setattr(bare.option, name, value)
    assert from_config(bare, ("cpu",)) == options
    changed = {
        field.name for field in fields(RunOptions) if getattr(options, field.name) != getattr(RunOptions(), field.name)
    }
    assert changed >= {field.name for field in fields(RunOptions)} - {
        "data",
        "devices",
        "audit",
        "trust_remote_code",
        "endpoint",
    }


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--lm-audit-device=cuda:1",), "--device cuda:N with --ray: a worker numbers its own GPUs from 0"),
        (("--lm-audit-device=cuda", "--lm-audit-device-map=auto"), "which has 1 of them; write --gpus-per-worker N"),
        (("--lm-audit-device-map=balanced", "--lm-audit-gpus-per-worker=0.5"), "--device-map balanced with --ray"),
        (("--lm-audit-device-map=auto", "--lm-audit-gpus-per-worker=2"), None),
        (("--lm-audit-device=cpu", "--lm-audit-device-map=auto"), None),
        (("--pdb",), "--pdb needs the case in this process"),
    ],
)
def test_what_cannot_go_with_a_cluster_is_refused_by_name(
    pytester: pytest.Pytester, words: tuple[str] | tuple[str, str], problem: str | None
) -> None:
    found = _problem(pytester.parseconfig("--lm-audit-ray=auto", *words))
    assert found is None if problem is None else problem in str(found)
