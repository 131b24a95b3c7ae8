"""The limits that the docs recommend: each can be met and missed at the size for which it is recommended."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import lm_audit.gates.reading
from lm_audit.audits.bias.grid.disparity import max_min_disparity
from lm_audit.audits.design import Design
from lm_audit.cli import main
from lm_audit.gates.gate import Gate, judge
from lm_audit.gates.reading import read_gates
from lm_audit.planning.forecast import half_width, units_needed
from lm_audit.stats import bounded_mean, clopper_pearson, mean_interval, roc_auc
from lm_audit.stats.estimate import Estimate

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]
LIMIT = re.compile(r"^(max|min|target) = ", re.MULTILINE)


def blocks() -> dict[str, str]:
    """Every gates file on any page, and that in the docstring of the module, which the reference shows."""
    found = {}
    for page in PAGES:
        texts = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        for number, text in enumerate(filter(LIMIT.search, texts), 1):
            metric = text.partition("]")[0].strip('["')
            found[f"{page.name} {number} {metric}"] = text
    (documented,) = re.findall(r"::\n\n((?:    .*\n)+)", lm_audit.gates.reading.__doc__ or "")
    return found | {"gates.py": re.sub(r"^    ", "", documented, flags=re.MULTILINE)}


BLOCKS = blocks()
AUDITS = ("bias", "privacy", "leakage", "needle", "faithfulness")
FIRST = {name.rpartition(" ")[2]: name for name in reversed(BLOCKS) if " " in name}.values()
"""One block of each metric: the others take the same way through the plan."""


def gate_of(name: str, folder: Path) -> tuple[Gate, Path]:
    """The gate of a block and its file; ``models`` is left out, since no plan here names such a model."""
    path = folder / "gates.toml"
    path.write_text(re.sub(r"models = .*\n", "", BLOCKS[name]), encoding="utf-8")
    (gate,) = read_gates(path)
    return gate, path


def test_there_is_an_example_for_each_audit_and_one_to_start_with() -> None:
    assert all(any(name.startswith("gates.md") and f" {audit}." in name for name in BLOCKS) for audit in AUDITS)
    assert any(name.startswith("getting-started.md") for name in BLOCKS)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in FIRST else [pytest.mark.slow]) for name in BLOCKS]
)
def test_a_recommended_limit_can_be_met_and_missed_at_its_size(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    size = re.search(r"--size (\w+)", BLOCKS[name])
    assert size is not None, "an example says in a comment for which size it is meant"
    gate, path = gate_of(name, tmp_path)
    audit = gate.metric.partition(".")[0]
    assert main(["plan", "--json", "--gates", str(path), "--size", size[1], "-m", audit]) == 0
    held = [design for design in json.loads(capsys.readouterr().out) if design["gates"]]
    assert held
    assert [entry["cannot_decide"] for design in held for entry in design["gates"]] == [None] * len(held)
    _met_and_missed(gate, held)


BOUNDS = {
    "bias.max_min_disparity": (0.0, np.inf),
    "privacy.roc_auc": (0.5, 1.0),
    "leakage.order_effect.logprob": (-np.inf, np.inf),
    "needle.accuracy": (0.0, 1.0),
}
"""Between what a sound model and a bad one give: chance counts as the end of what is sound."""


def _met_and_missed(gate: Gate, designs: list[dict[str, object]]) -> None:
    """Estimates of the expected width are decided on both sides of the limit, at values that the metric can have.

    Where the plan knows widths in standard deviations alone, ``SIMULATED`` must try the limit.
    """
    for design in designs:
        half, units = design["half_width"], design["units"]
        assert isinstance(half, float) and isinstance(units, int) and half > 0, design
        if design["in_sd"]:
            assert gate.metric in SIMULATED
            continue
        lowest, highest = BOUNDS[gate.metric]
        within = [side for side in (gate.low + 1.01 * half, gate.high - 1.01 * half) if np.isfinite(side)]
        assert all(gate.low + half <= side <= gate.high - half and lowest <= side <= highest for side in within), design
        beyond = [side for side in (gate.low - 1.01 * half, gate.high + 1.01 * half) if np.isfinite(side)]
        assert beyond and any(lowest <= side <= highest for side in beyond), design
        at = [side for side in (gate.low, gate.high) if np.isfinite(side)]
        for values, word in ((within, "met"), (beyond, "missed"), (at, "undecided")):
            told = [judge(gate, Estimate(value, value - half, value + half, n=units)).word for value in values]
            assert told == [word] * len(values), (gate, design)


@pytest.mark.parametrize(
    ("gate", "half"),
    [
        (Gate("privacy.roc_auc", high=0.75), 0.3),
        (Gate("needle.accuracy", low=0.9), 0.11),
        (Gate("leakage.order_effect.logprob", low=-0.2, high=0.2), 0.21),
        (Gate("bias.max_min_disparity", high=1.0), 1.1),
    ],
    ids=lambda value: getattr(value, "metric", ""),
)
def test_a_limit_that_too_few_units_cannot_meet_is_noticed(gate: Gate, half: float) -> None:
    design: dict[str, object] = {"half_width": half, "units": 12, "in_sd": False}
    with pytest.raises(AssertionError):
        _met_and_missed(gate, [design])
    _met_and_missed(gate, [design | {"half_width": half / 4}])


Draw = Callable[[np.random.Generator, float], Estimate]


def grid(rng: np.random.Generator, effect: float) -> Estimate:
    """Two groups on the shipped grid, with the spreads between templates, word pairs and cells of an ordinary model."""
    difference = 0.4 * rng.normal(size=(12, 1)) + 0.4 * rng.normal(size=(1, 13)) + 0.6 * rng.normal(size=(12, 13))
    values = np.stack([difference / 2 + effect, -difference / 2])
    return max_min_disparity(values, confidence=0.95, seed=0).estimate


SIMULATED: dict[str, tuple[Draw, float, float]] = {
    "bias.max_min_disparity": (grid, 0.0, 3.0),
    "privacy.roc_auc": (lambda rng, shift: roc_auc(rng.normal(shift, 1, 15), rng.normal(size=15)), 0.0, 4.0),
    "leakage.order_effect.logprob": (
        lambda rng, effect: mean_interval(rng.normal(effect, 0.35, 36), n_resamples=499, seed=0), 0.0, 0.5
    ),
    "needle.accuracy": (lambda rng, rate: clopper_pearson(int(rng.binomial(275, rate)), 275), 0.98, 0.75),
    "faithfulness.recovery": (
        lambda rng, mean: bounded_mean(rng.beta(8 * mean, 8 - 8 * mean, 24), n_resamples=499, seed=0), 0.8, 0.15
    ),
}  # fmt: skip
"""How each audit estimates its metric, and what a sound model and a bad one give."""


@cache
def drawn(metric: str) -> tuple[list[Estimate], list[Estimate]]:
    """Estimates of a sound model and of a bad one."""
    draw, sound, bad = SIMULATED[metric]
    rng = np.random.default_rng(0)
    return [draw(rng, sound) for _ in range(40)], [draw(rng, bad) for _ in range(40)]


@pytest.mark.parametrize("name", [name for name in BLOCKS if name.startswith("gates.md")])
def test_a_sound_model_meets_a_recommended_limit_and_a_bad_one_misses_it(name: str, tmp_path: Path) -> None:
    gate, _ = gate_of(name, tmp_path)
    sound, bad = ([judge(gate, estimate).word for estimate in estimates] for estimates in drawn(gate.metric))
    assert sound.count("met") >= 22 and sound.count("missed") <= 2
    assert bad.count("missed") >= 36


def test_the_numbers_of_units_that_the_docs_name_are_those_that_decide() -> None:
    text = " ".join((ROOT / "docs" / "gates.md").read_text(encoding="utf-8").split())
    auc = Design("m", "auc", 15, "canaries", low=0.0, high=1.0, chance=0.5, others=200)
    assert f"with 15 members and 200 twins an AUC has an interval of +- {half_width(auc, 15):.2f}" in text
    assert f"it takes {units_needed(auc, Gate('m', high=0.55))} members and as many twins" in text
    order = Design("m", "mean", 36, "questions", sd=0.35, chance=0.0)
    assert f"+- {half_width(order, 36):.2f} nats a byte" in text
    assert units_needed(order, Gate("m", low=-0.02, high=0.02)) == pytest.approx(1200, rel=0.03)
    low = clopper_pearson(18, 18).low
    assert low is not None and f"18 of 18 is {low:.2f} to 1" in text
    high = clopper_pearson(0, 36).high
    assert high == pytest.approx(1 - 0.025 ** (1 / 36)) and f"0 of 36 is 0 to {high:.3f}" in text
