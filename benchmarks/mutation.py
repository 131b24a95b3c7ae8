"""Measure which lines of the parts that give verdicts no test would miss, by mutation testing (mutmut).

    make mutation                                        # all groups; an hour of one core
    python benchmarks/mutation.py compare --seconds 300  # one group, for at most so long; the next call goes on
    python benchmarks/mutation.py compare --sample 200   # a random part of those not yet tried
    python benchmarks/mutation.py compare --survivors    # what no test noticed and nobody explained, as diffs

mutmut 3 knows a source root called src and one set of tests. Each group is therefore laid out as a tree of its own
under build/mutation/, with a link to the sources and the tests that are fast and near to it; results stay there, and a
changed function is tried anew. Which tests reach a function is asked of new tests alone: remove a group's folder where
functions are new. A mutant that no test of the group reaches counts as survived. Survivors that change nothing that
anybody could see are explained in benchmarks/explained_mutants.toml.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "mutation"
EXPLAINED = ROOT / "benchmarks" / "explained_mutants.toml"
PACKAGE = "src/lm_audit"


@dataclass(frozen=True)
class Group:
    """Modules under test (of some, only the functions that match ``only``), and the tests that must notice changes."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    only: tuple[str, ...] = ("*",)


COMPARING = (
    "tests/report/comparing/test_comparison_rules.py",
    "tests/report/comparing/test_interval_difference.py",
    "tests/report/comparing/test_comparing_runs.py",
    "tests/report/comparing/test_comparing_models.py",
    "tests/report/comparing/test_comparing_broken_runs.py",
    "tests/report/comparing/test_comparing_other_data.py",
    "tests/report/comparing/test_hostile_pairs.py",
    "tests/report/comparing/test_reversed.py",
    "tests/report/conclusions/test_what_is_decided.py",
)
FINDINGS = (
    "tests/findings/test_findings_record.py",
    "tests/findings/test_what_findings_rest_on.py",
    "tests/findings/test_sentences.py",
    "tests/findings/test_audit_conclusions.py",
)
STATISTICS = ("tests/stats", "properties/stats", "tests/findings/test_verdict_values.py")
LEAKAGE = tuple(
    f"tests/audits/leakage/test_{name}.py"
    for name in (
        "single_files",
        "weighted_statistics",
        "leakage_conditions",
        "leakage_golden_pure",
        "leakage_intervals",
        "leakage_sources",
    )
)

GROUPS = {
    "compare": Group(
        ("report/comparison/metric_change.py", "report/comparison/interval_difference.py"),
        COMPARING,
    ),
    "runs": Group(("report/comparison/runs.py", "report/comparison/losing.py"), COMPARING),
    "deciding": Group(
        ("report/comparison/deciding.py", "report/comparison/matching.py"),
        (
            "tests/report/comparing/test_comparison_rules.py",
            "tests/report/comparing/test_comparing_broken_runs.py",
            "tests/report/comparing/test_comparing_models.py",
        ),
    ),
    "changes": Group(
        (
            "sources/exchanges/alike.py",
            "sources/change.py",
            "sources/limits.py",
            "sources/moved.py",
            "sources/exchanges/swaps.py",
        ),
        (
            "tests/sources/test_change_values.py",
            "tests/sources/test_changes_of_rounding.py",
            "tests/sources/test_changes_of_steps.py",
            "tests/sources/test_changes_of_tiers.py",
            "tests/sources/test_two_samples.py",
            "tests/sources/test_paired_statistics.py",
            "tests/sources/test_groups_alike.py",
        ),
    ),
    "remarks": Group(
        ("report/comparison/remarks.py", "report/conclusions/voids.py"),
        (
            *COMPARING,
            "tests/report/comparing/test_remarks.py",
            "tests/report/conclusions/test_shared_controls.py",
            "tests/report/conclusions/test_void_summaries.py",
        ),
    ),
    "directions": Group(
        (
            "report/comparison/direction.py",
            "report/comparison/finding_change.py",
            "report/comparison/margins.py",
        ),
        ("tests/report/comparing/test_directions.py", "tests/report/comparing/test_reversed.py"),
    ),
    "told": Group(
        ("report/comparison/models_compared.py", "report/comparison/rows.py", "report/comparison/text.py"),
        (*COMPARING, "tests/report/comparing/test_told_changes.py", "tests/report/test_terminal_summary.py"),
    ),
    "concluded": Group(
        (
            "report/conclusions/answer.py",
            "report/conclusions/by_strength.py",
            "report/conclusions/findings_told.py",
        ),
        (
            "tests/report/conclusions/test_answers_told.py",
            "tests/report/conclusions/test_cell_leads.py",
            "tests/report/test_built_in_toy.py",
            "tests/report/conclusions/test_needed_text.py",
            "tests/report/conclusions/test_states.py",
            "tests/report/conclusions/test_void_summaries.py",
            "tests/report/conclusions/test_what_is_decided.py",
            "tests/report/test_terminal_summary.py",
            *FINDINGS,
        ),
    ),
    "fold": Group(
        ("runstore/fold.py", "runstore/voids.py"),
        (
            "tests/runstore/test_ledger_fold.py",
            "tests/runstore/test_fold_attempts.py",
            "tests/runstore/test_belonging.py",
            "tests/runstore/test_earlier_sessions.py",
            "tests/runstore/test_ledger_order.py",
            "tests/runstore/test_damaged_runs.py",
            "tests/report/conclusions/test_shared_controls.py",
        ),
    ),
    "gates": Group(
        ("gates/gate.py", "gates/reading.py", "plugin/record/gating.py", "stats/covering.py"),
        (
            "tests/plugin/gates/test_gates_rules.py",
            "tests/plugin/gates/test_gates_refused.py",
            "tests/plugin/gates/test_gating_in_process.py",
            "tests/report/conclusions/test_states.py",
        ),
    ),
    "limits": Group(
        ("gates/checks.py",), ("tests/plugin/gates/test_gates_refused.py", "tests/plugin/gates/test_gates_rules.py")
    ),
    "states": Group(("report/page/states.py",), ("tests/report/conclusions/test_states.py",)),
    "findings": Group(
        (
            "findings/beyond.py",
            "findings/claims.py",
            "findings/controls.py",
            "findings/deciding.py",
            "findings/exact_shares.py",
            "findings/excluding.py",
            "findings/family.py",
            "findings/needed.py",
        ),
        ("tests/findings/test_verdict_values.py", "tests/findings/test_findings_record.py"),
    ),
    "sentences": Group(
        (
            "findings/amounts.py",
            "findings/factor.py",
            "findings/record.py",
            "audits/bias/conclusions.py",
            "audits/faithfulness/conclusions.py",
            "audits/leakage/evidence/conclusions.py",
            "audits/needle/conclusions.py",
            "audits/privacy/evidence/conclusions.py",
        ),
        (
            *FINDINGS,
            "tests/findings/test_verdict_values.py",
            "tests/audits/leakage/test_single_files.py",
            "tests/audits/bias/test_grid_verdicts.py",
        ),
    ),
    "plan": Group(("planning/forecast.py", "planning/table.py", "audits/design.py"), ("tests/suite/test_planning.py",)),
    "files": Group(
        ("audits/leakage/half_option/single_files.py", "audits/leakage/statistics.py"),
        ("tests/audits/leakage/test_single_files.py", "tests/audits/leakage/test_weighted_statistics.py"),
    ),
    "orders": Group(
        (
            "audits/leakage/averages.py",
            "audits/leakage/weighted_units.py",
            "audits/leakage/half_option/conditions.py",
            "audits/leakage/half_option/published.py",
            "audits/leakage/orders/evidence.py",
            "audits/leakage/orders/neighbours.py",
            "audits/leakage/orders/permutations.py",
            "audits/leakage/orders/ranking.py",
            "audits/leakage/orders/rows.py",
        ),
        LEAKAGE,
    ),
    "grid": Group(
        ("audits/needle/grid/cells.py", "audits/needle/grid/cliff.py", "audits/needle/grid/whole_grid.py"),
        tuple(f"tests/audits/needle/test_needle_{name}.py" for name in ("golden", "scoring", "adaptive", "sources")),
    ),
    "shares": Group(
        (
            "audits/bias/benchmarks/shares.py",
            "audits/bias/generated/refusal_shares.py",
            "audits/bias/grid/preference.py",
        ),
        tuple(
            f"tests/audits/bias/test_{name}.py"
            for name in ("bias_grid", "bias_golden", "bias_refusal", "bias_sources", "grid_verdicts", "answers_known")
        ),
    ),
    "opinion": Group(
        (
            "audits/second_opinion.py",
            "sources/opinion/chance_levels.py",
            "sources/opinion/reach.py",
            "sources/opinion/shares.py",
        ),
        (
            "tests/audits/test_second_opinion.py",
            "tests/sources/test_opinion_values.py",
            "tests/audits/test_lost_items.py",
            "tests/audits/bias/test_grid_verdicts.py",
        ),
    ),
    "recomputing": Group(
        tuple(
            f"sources/{name}.py"
            for name in (
                "checking",
                "clusters",
                "counting",
                "evaluation",
                "functions",
                "recomputing",
                "spread",
                "statistics",
                "units",
            )
        ),
        ("tests/sources",),
    ),
    "estimates": Group(
        (
            "stats/comparison.py",
            "stats/decision.py",
            "stats/effective_number.py",
            "stats/effects.py",
            "stats/estimate.py",
            "stats/inputs.py",
            "stats/testing/equivalence.py",
            "stats/testing/permutation.py",
            "stats/testing/power.py",
        ),
        STATISTICS,
    ),
    "means": Group(
        tuple(
            f"stats/means/{name}.py"
            for name in (
                "bounded",
                "cluster_robust",
                "crossed",
                "disparity",
                "independent",
                "mean_difference",
                "order_statistics",
                "skewed",
                "studentised",
                "two_way",
            )
        ),
        STATISTICS,
    ),
    "rates": Group(
        (
            "stats/leaks/epsilon.py",
            "stats/leaks/exposure.py",
            "stats/leaks/lira.py",
            "stats/ranking/average_precision.py",
            "stats/ranking/intervals.py",
            "stats/ranking/scores.py",
            "stats/shares/clustered_share.py",
            "stats/shares/proportions.py",
            "stats/shares/share_differences.py",
        ),
        STATISTICS,
    ),
    "resampling": Group(
        tuple(f"stats/bootstrap/{name}.py" for name in ("clustered", "limits", "resampling", "samples")), STATISTICS
    ),
    "multiplicity": Group(
        ("stats/multiplicity/adjustment.py", "stats/multiplicity/families.py"), ("tests/stats/test_multiplicity.py",)
    ),
    "bias": Group(("audits/bias/grid/controls/verdict.py",), ("tests/audits/bias/test_grid_verdicts.py",)),
    "exchanges": Group(
        ("audits/bias/grid/controls/exchanges.py",),
        ("tests/audits/bias/test_exchange_arithmetic.py", "tests/audits/bias/test_bias_exchanges.py"),
    ),
    "needle": Group(
        ("audits/needle/controls/stubs.py",),
        ("tests/audits/needle/test_needle_control_verdicts.py",),
        tuple(
            f"*stubs.x_{name}_*"
            for name in ("silent", "_by_chance", "_distance", "_middle", "chance_evidence", "_with_control")
        ),
    ),
    "answers": Group(
        (
            "audits/leakage/controls/published_hits.py",
            "audits/privacy/controls/known_scores.py",
            "audits/privacy/controls/plain_scores.py",
        ),
        ("tests/audits/test_known_answers.py",),
    ),
    "controls": Group(
        (
            "audits/leakage/controls/expected.py",
            "audits/faithfulness/controls/deletion_control.py",
            "audits/faithfulness/controls/known_sources.py",
            "audits/privacy/controls/trained_controls.py",
            "audits/privacy/measure/blind.py",
        ),
        ("tests/audits/test_control_verdicts.py",),
        (
            "*expected.x_*_control_*",
            "*expected.x__gain_*",
            "*expected.x__unsound_*",
            "*expected.x__p_*",
            "*deletion_control.x_judged_*",
            "*deletion_control.x__one_sided_*",
            "*known_sources.x_most_*",
            "*known_sources.x_few_*",
            "*known_sources.x__limit_*",
            "*trained_controls.x_judge_*",
            "*trained_controls.x__above_*",
            "*blind.x*shown_*",
            "*blind.x_separation_*",
            "*blind.x_blind_baseline_*",
        ),
    ),
}


def lay_out(name: str) -> Path:
    """The group's tree, with mutmut's settings."""
    group, tree = GROUPS[name], BUILD / name
    # It must be there when Python starts, or its importer takes it for a folder without modules.
    (tree / "mutants" / "src").mkdir(parents=True, exist_ok=True)
    linked = [(tree / "src", ROOT / "harness"), (tree / "shared", ROOT / "../shared")]
    # Where tests run, beside their copy: what they read of the repository.
    linked += [
        (tree / "mutants" / name, ROOT / name) for name in ("benchmarks", "docs", "evals", "fixtures", "harness")
    ]
    for link, target in linked:
        if not link.exists() and target.exists():
            link.symlink_to(target)
    for copied in ("tests", "properties"):
        for old in (tree / copied, tree / "mutants" / copied):
            shutil.rmtree(old, ignore_errors=True)
        shutil.copytree(ROOT / copied, tree / copied, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "conftest.py", tree)
    ini = (ROOT / "pytest.ini").read_text(encoding="utf-8")
    (tree / "pytest.ini").write_text(ini.replace("pythonpath = harness", "pythonpath = src"), encoding="utf-8")
    settings = {
        "source_paths": ["src"],
        "only_mutate": [f"{PACKAGE}/{module}" for module in group.modules],
        "also_copy": ["conftest.py", "pytest.ini", "properties"],
        "pytest_add_cli_args": ["-p", "no:cacheprovider", "-m", "not slow"],
        "pytest_add_cli_args_test_selection": list(group.tests),
        "use_git_change_detection": False,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    (tree / "pyproject.toml").write_text("[tool.mutmut]\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return tree


def mutmut(tree: Path, *words: str, seconds: float | None = None) -> str:
    """What mutmut prints, or what it had printed when the time was over."""
    paths = os.pathsep.join(map(str, (tree / "mutants" / "src", tree)))
    env = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", "from mutmut.__main__ import cli; cli()", *words]
    try:
        done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode("utf-8", "replace")
    if done.returncode:
        raise SystemExit(
            f"mutmut {' '.join(words)} ended with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        )
    return done.stdout


def results(tree: Path) -> dict[str, int | None]:
    """The exit code of the tests for each mutant; ``None`` where it was not tried."""
    found: dict[str, int | None] = {}
    for path in sorted((tree / "mutants" / "src").rglob("*.py.meta")):
        found |= json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
    return found


def matching(name: str, found: dict[str, int | None]) -> dict[str, int | None]:
    """The mutants of the modules and functions that the group is about."""
    group = GROUPS[name]
    modules = {f"lm_audit.{module.removesuffix('.py').replace('/', '.')}" for module in group.modules}
    return {
        mutant: code
        for mutant, code in found.items()
        if mutant.rpartition(".")[0] in modules and any(fnmatch(mutant, part) for part in group.only)
    }


KILLED = frozenset({1, 3, 24, 36, -24, 152, 255})
"""pytest's exit codes for failed tests, and mutmut's for mutants that ran out of time."""


def told(name: str, tree: Path) -> str:
    """One line for each module: mutants, tried, killed, survived, and how many of these are explained."""
    counts: Counter[tuple[str, str]] = Counter()
    open_ones = set(survivors(name))
    for mutant, code in matching(name, results(tree)).items():
        module = mutant.rpartition(".")[0]
        counts[module, "mutants"] += 1
        if code is not None:
            counts[module, "tried"] += 1
            counts[module, "killed" if code in KILLED else "survived"] += 1
            counts[module, "explained"] += code not in KILLED and mutant not in open_ones
    lines = [f"{name}:"]
    for module in sorted({module for module, _ in counts}):
        words = ("mutants", "tried", "killed", "survived", "explained")
        lines.append(f"  {module:45} {', '.join(f'{word} {counts[module, word]}' for word in words)}")
    return "\n".join(lines)


SHOW = """
import json, sys
from mutmut.mutation.diff_apply import find_mutant, get_diff_for_mutant
names = sys.stdin.read().split()
print(json.dumps({name: get_diff_for_mutant(name, path=find_mutant(name).path) for name in names}))
"""


def diffs(name: str, mutants: Sequence[str]) -> dict[str, str]:
    """What each of the mutants changes."""
    if not mutants:
        return {}
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        cwd=BUILD / name,
        input="\n".join(mutants),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def survivors(name: str) -> list[str]:
    """The mutants that no test noticed and that are not explained."""
    found = matching(name, results(BUILD / name))
    left = [mutant for mutant, code in found.items() if code is not None and code not in KILLED]
    record = tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))
    known = {(entry["function"], " ".join(line.split())) for entry in record["mutants"] for line in entry["lines"]}
    kinds = [re.compile(kind["pattern"]) for kind in record["kinds"]]
    return [
        mutant
        for mutant, diff in diffs(name, left).items()
        if (_function(mutant), _lines(diff, "+")) not in known and not any(_only(kind, diff) for kind in kinds)
    ]


def _only(kind: re.Pattern[str], diff: str) -> bool:
    """Whether all that a mutant changes is what the pattern matches, taken out where it stands."""
    before, after = (kind.sub("", _lines(diff, sign)).replace(", )", ")") for sign in "-+")
    return before == after


def _function(mutant: str) -> str:
    """``stats.covering.too_few`` of ``lm_audit.stats.covering.x_too_few__mutmut_3``; a method with its class."""
    module, _, name = mutant.partition(".")[2].rpartition(".")
    return f"{module}.{name.rpartition('__mutmut_')[0][2:].replace('ǁ', '.')}"


def _lines(diff: str, sign: str) -> str:
    """The lines that a mutant writes (``+``) or takes away (``-``), in one."""
    lines = [line[1:] for line in diff.splitlines() if line.startswith(sign) and not line.startswith(3 * sign)]
    return " ".join(" ".join(lines).split())


def run(name: str, *, seconds: float, sample: int | None, again: bool, seed: int, jobs: int) -> None:
    """Try the group's mutants (or a sample of them) for at most ``seconds``, so many ``jobs`` beside each other."""
    tree, end = lay_out(name), time.monotonic() + seconds
    found = matching(name, results(tree))
    words = survivors(name) if again else [mutant for mutant, code in found.items() if code is None]
    if sample is not None and not again:
        words = random.Random(seed).sample(sorted(words), min(sample, len(words)))
    # Without any mutants yet, their names are not known: the patterns stand for them.
    words = words or ([] if found else list(GROUPS[name].only))
    if not words:
        print(told(name, tree))
        return
    if "*" in words:
        words = []
    mutmut(tree, "run", "--max-children", str(jobs), *words, seconds=max(1.0, end - time.monotonic()))
    print(told(name, tree))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)} (default: all)")
    parser.add_argument("--seconds", type=float, default=3600, help="time for each group (default 3600)")
    parser.add_argument("--sample", type=int, help="mutants to draw instead of all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--survivors", action="store_true", help="print the survivors' diffs; runs nothing")
    parser.add_argument("--jobs", type=int, default=1, help="mutants that are tried beside each other (default 1)")
    parser.add_argument("--again", action="store_true", help="try the survivors of earlier runs anew")
    options = parser.parse_args()
    for name in options.groups or GROUPS:
        if name not in GROUPS:
            parser.error(f"no group is called {name!r}; there are {', '.join(GROUPS)}")
        if options.survivors:
            print("\n\n".join(diffs(name, survivors(name)).values()))
        else:
            run(
                name,
                seconds=options.seconds,
                sample=options.sample,
                again=options.again,
                seed=options.seed,
                jobs=options.jobs,
            )


if __name__ == "__main__":
    main()
