"""``--limit N``: one number of items for every audit, drawn by the seed."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from evals import test_bias, test_faithfulness, test_leakage, test_needle, test_privacy
from lm_audit.audits.bias.grid.lexicon.limit import smaller_grid
from lm_audit.audits.bias.grid.lexicon.parts import PreferenceSet, WordPair
from lm_audit.audits.drawing import drawn
from lm_audit.audits.privacy.data.canaries import Canary
from lm_audit.audits.privacy.data.limiting import limited
from lm_audit.audits.privacy.data.manifest import Manifest
from lm_audit.audits.privacy.measure.blind import separation
from lm_audit.audits.privacy.measured_cases import canary_limit
from lm_audit.audits.registry import audit_packages
from lm_audit.cli import main
from lm_audit.plugin import Case
from lm_audit.plugin.options.audit_options import audit_options
from lm_audit.plugin.options.run_options import RunOptions
from tests.plugin.toy_audit import MODEL_AUDIT, audit_project, last_run, measured, run_pytest


def options(limit: int | None = None, seed: int = 0, **audit: object) -> RunOptions:
    """Options with every audit's own at its default."""
    own = {option.name: option.default for option in audit_options()}
    return RunOptions(limit=limit, seed=seed, audit=own | audit)


def test_a_draw_is_the_seeds_and_keeps_the_order() -> None:
    items = list(range(200))
    draws = [drawn(items, 12, seed=seed) for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2] and all(draw == sorted(draw) and len(set(draw)) == 12 for draw in draws)
    assert max(draws[0]) > 20, "not the first twelve"
    assert drawn(items, None, seed=0) == drawn(items, 200, seed=0) == drawn(items, 999, seed=0) == items


def test_the_option_of_an_audit_goes_before_the_limit_and_the_limit_before_the_size() -> None:
    assert (options().items(12), options().items(12, 3), options(5).items(12), options(5).items(12, 3)) == (12, 3, 5, 3)
    assert (options().items(None), options(5).items(None)) == (None, 5)


@pytest.mark.parametrize("limit", [1, 20, 40, 156])
@pytest.mark.parametrize(("templates", "pairs"), [(12, 13), (4, 40), (40, 4), (1, 60)])
def test_a_grid_is_cut_alike_on_both_sides(limit: int, templates: int, pairs: int) -> None:
    words = tuple(WordPair(f"good{k}", f"bad{k}") for k in range(pairs))
    grid = PreferenceSet("en", " ", tuple(f"{{group}} {k}" for k in range(templates)), (), words, "n")
    found = [smaller_grid(grid, limit, seed=seed) for seed in range(3)]
    for cut in found:
        size = len(cut.templates) * len(cut.pairs)
        assert size <= limit and set(cut.pairs) <= set(words)
        assert min(len(cut.templates), len(cut.pairs)) == min(templates, pairs, int(limit**0.5))
    assert smaller_grid(grid, templates * pairs, seed=0) is grid
    if limit == 20 and templates == 12:
        assert len({cut.templates for cut in found}) > 1, "drawn by the seed, not the first"


def manifest(members: dict[int, int], twins: int, assignment: str = "fixed") -> Manifest:
    """So many members of each repetition level, and twins."""
    levels = [level for level, many in members.items() for _ in range(many)] + [0] * twins
    return Manifest(
        tuple(
            Canary(f"c{k}", "code", f"x {k}", f"{k}", (2, 2 + len(str(k))), "member" if level else "control", level)
            for k, level in enumerate(levels)
        ),
        0,
        assignment,
    )


def test_fewer_canaries_are_of_every_level_and_coins_stay_coins() -> None:
    whole = manifest({1: 50, 4: 5, 16: 5}, 100)
    cut = limited(whole, 9, seed=0)
    assert [len(cut.members), len(cut.controls)] == [9, 9]
    assert sorted(canary.repetitions for canary in cut.members) == [1] * 3 + [4] * 3 + [16] * 3
    assert cut.members != limited(whole, 9, seed=1).members and limited(whole, None, seed=0) is whole
    everything = limited(whole, 1000, seed=0)
    assert everything.canaries == whole.canaries
    coins = manifest({1: 100}, 100, "coins")
    sizes = {len(limited(coins, 20, seed=seed).members) for seed in range(8)}
    assert len(sizes) > 2, "the number of members is left to the coins"
    assert all(len(limited(coins, 20, seed=seed).canaries) == 40 for seed in range(8))


def test_every_audit_measures_so_many_items() -> None:
    """What cases hold before anything runs; each audit that has sets of items is here."""
    asked = {}
    source = next(iter(test_leakage.sources(options()).values()))
    asked["leakage"] = [len(test_leakage.read(source, options(7, seed), heavy=heavy).items) for seed, heavy in
                        ((0, False), (1, True))]  # fmt: skip
    asked["needle"] = [plan.samples for plan in test_needle.grids(options(7))]
    asked["faithfulness"] = [len(samples) for samples in test_faithfulness.sample_sets(options(7)).values()]
    asked["bias"] = [len(test_bias.swap_items(test_bias.swap_cases(options(7))[0], options(7))) // 2]
    asked["privacy"] = [len(limited(manifest({1: 20}, 20), 7, seed=0).members)]
    assert set(asked) == set(audit_packages()) and all(set(sizes) == {7} for sizes in asked.values())
    grids = [grid for grid in test_bias.grids(options(49))]
    assert all(len(grid.templates) == len(grid.pairs) == 7 for grid in grids)
    assert len(test_leakage.read(source, options(7, leakage_limit=5)).items) == 5


@pytest.mark.parametrize(
    ("limit", "drawn_rows", "told"), [(None, 4, False), (1, 4, True), (4, 4, False), (7, 7, False)]
)
def test_a_public_set_keeps_a_row_of_each_kind_and_says_so(limit: int | None, drawn_rows: int, told: bool) -> None:
    rows = [{"bias_type": "abcd"[k % 4]} for k in range(20)]
    case = Case("stereoset", {"kind": "stereoset", "sample": 2 if limit is None else limit})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chosen, notes = test_bias.sampled(rows, case, options(limit))
    assert len(chosen) == drawn_rows and {row["bias_type"] for row in chosen} == set("abcd")
    assert bool(caught) is told and bool(notes) is (limit in (None, 1))
    if told:
        assert "--limit 1: 4 rows are drawn" in str(caught[0].message)


def test_membership_by_scores_takes_as_many_texts_of_each_side(tmp_path: Path) -> None:
    for side in ("in", "out"):
        lines = [json.dumps({"text": f"text {number} that stands {side}side"}) for number in range(60)]
        (tmp_path / f"{side}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    files = Case("texts", {"members": str(tmp_path / "in.jsonl"), "held_out": str(tmp_path / "out.jsonl")})
    canaries = Case("manifest", {"manifest": manifest({1: 60}, 60)})

    def sides(case: Case, limit: int | None) -> list[int]:
        texts = test_privacy.given_texts(case, options(limit), 0)
        return [sum(one.member is side for one in texts) for side in (True, False)]

    assert sides(files, 9) == sides(canaries, 9) == [9, 9]
    assert sides(files, 1) == sides(canaries, 1) == [canary_limit(1)] * 2, "the control must be able to fail"
    assert (sides(files, None), sides(canaries, None)) == ([40, 40], [60, 60])
    assert len(test_privacy.given_canaries(canaries, options(9), 0).canaries) == 18


def test_a_plan_says_what_a_limit_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    main(["plan", "-m", "leakage or needle", "--limit", "9", "--model", "tiny", "--device", "cpu"])
    told = capsys.readouterr().out
    assert "at size smoke and --limit 9" in told
    assert "test_memorisation, 2 cases (tiny@cpu-general_en, ...), 9 questions" in told
    # Of the lengths 256 has no room for the task.
    assert "needle.accuracy: test_cell, 3 cases (tiny@cpu-niah_single_2-L512-D0, ...), 9 samples" in told


def test_a_limit_is_recorded_and_kept_by_a_resumed_run(tmp_path: Path) -> None:
    project = audit_project(tmp_path)
    assert run_pytest(project, "--limit", "5").code == 0
    run = last_run(project)
    assert run.metadata["options"]["limit"] == 5
    assert run_pytest(project, "--resume", run.run_id).counts == {"resumed": 3}
    other = run_pytest(project, "--resume", run.run_id, "--limit", "6")
    assert other.code != 0 and "that run has --limit 5, this call --limit 6" in other.output
    assert "--limit" in run_pytest(project, "--limit", "0").output
    assert run_pytest(project).code == 0
    whole = run_pytest(project, "--resume", last_run(project).run_id, "--limit", "3")
    assert whole.code != 0 and "that run has no --limit, this call --limit 3" in whole.output


def test_so_few_canaries_as_a_limit_may_leave_can_still_void_the_audit() -> None:
    fewest = canary_limit(1)
    assert fewest is not None and canary_limit(None) is None and canary_limit(50) == 50
    apart, fewer = (separation(np.arange(n) + 100.0, np.arange(n, dtype=float)) for n in (fewest, 5))
    assert apart.shown and not fewer.shown


def test_where_a_model_lies_and_how_much_it_reads_at_once_is_recorded(tmp_path: Path) -> None:
    project = audit_project(tmp_path, MODEL_AUDIT)
    words = ("--model", "tiny", "--device", "cpu", "-k", "short")
    done = run_pytest(project, *words, "--device-map", "auto", "--batch-tokens", "8", "--packed-weights", "off")
    assert done.code == 0, done.output
    options = last_run(project).metadata["options"]
    assert (options["device_map"], options["batch_tokens"], options["packed_weights"]) == ("auto", 8, "off")
    before = measured(last_run(project))
    assert run_pytest(project, *words).code == 0
    assert measured(last_run(project)) == before
    for wrong, told in ((("--device-map", "everywhere"), "invalid choice"), (("--batch-tokens", "0"), "batch-tokens")):
        assert told in run_pytest(project, *words, *wrong).output
