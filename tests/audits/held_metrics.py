"""Which metrics a control holds by another route, by the names under which audits declare them.

``HELD`` is what ``benchmarks/controls/held.py`` sees; ``ELSEWHERE`` are holds of a control's own that it does not see.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PARTS = ("value", "interval", "chance")

HELD: Mapping[str, tuple[str, ...]] = {
    name: tuple(parts.split())
    for name, parts in (
        line.split(": ") for line in (Path(__file__).parent / "held_metrics.txt").read_text("utf-8").splitlines()
    )
}
"""Metric -> its parts that ``second_opinion`` compares in some control."""

ELSEWHERE: Mapping[str, str] = {
    r"bias\.(max_min_p|max_min_permutation_p|holm_p|sign_flip_holm_p|equivalence_p)(\..*)?":
        "p-values must be those of the cells, and say what a right test does of 32 exchanges (grid/exchanges.py)",
    r"bias\.max_min_disparity(\.\{axis\})?": "the interval is that of the cells, and right for cells moved apart",
    r"bias\.stereoset_icat(\.type\.\{type\})?": "value and limits by trying those of SS and LMS (stereoset/known.py)",
    r"bias\.control_agreement": "the control's own share of what agrees",
    r"leakage\..*\.largest_file": "t intervals that hold together, file by file (leakage/controls/several_files.py)",
    r"leakage\..*\.(p|p_sign_flip)": "planted effects give less than 0.001 in every test, what is not planted does not",
    r"needle\.cliff": "limits, n and level of cliffs known beforehand (needle/controls/answers_known.py)",
    r"needle\.samples_spent": "an adaptive search of known answers is counted (needle/controls/answers_known.py)",
    r"needle\.chance_rate": "the test of no-needle is this rate's",
    r"privacy\.(\{\w+\}\.)?epsilon": "a quantile of the Beta distribution (privacy/controls/other_formulas.py)",
    r"privacy\.(\{\w+\}\.)?did\.p": "of secrets that were memorised it lies below 0.05 as the interval does",
    r"privacy\.control_auc\.p": "what decides never-trained",
    r"privacy\.power\..*": "by the noncentral t and by exponential scores (privacy/controls/known_seeds.py)",
}  # fmt: skip
"""Patterns of metrics -> what holds them."""

WITHOUT: Mapping[str, str] = {}
"""Patterns of metrics that no control of a run holds -> why none can; none is left."""
