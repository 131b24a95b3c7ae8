"""The rule of verdicts and its p-values, excluded sizes and needed numbers, against values worked out elsewhere."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, binomtest, t

from lm_audit.evidence import Control
from lm_audit.findings import Finding, Side, claim
from lm_audit.findings.controls import control_finding
from lm_audit.findings.deciding import MANY_CORRECTED, decided, excluded_above, p_of_interval
from lm_audit.findings.exact_shares import exact_share
from lm_audit.findings.excluding import excluded_words
from lm_audit.findings.family import corrected
from lm_audit.findings.needed import units_that_would_tell
from lm_audit.stats import Estimate, clopper_pearson, share_limits
from lm_audit.stats.shares.clustered_share import share_p

TEXTS: dict[str, Any] = {"found": "it does", "absent": "it does not", "unknown": "does it?"}
WIDE = "the interval reaches from no effect to one that matters"


def effect(low: float | None, high: float | None, value: float = 0.3, n: int | None = 40, **more: Any) -> Estimate:
    return Estimate(value, low, high, n=n, **more)


def finding(of: Estimate | None, **more: Any) -> Finding:
    fields: dict[str, Any] = {"null": 0.0, "margin": 0.1, "p": 0.01} | more
    return Finding("k", "cannot tell", "a", "b", "c", effect=of, **fields)


@pytest.mark.parametrize(
    ("of", "null", "df", "half", "confidence"),
    [
        (effect(0.1, 0.5, n=10), 0.0, 9, 0.2, 0.95),
        (effect(0.1, 0.5, n=90, units=10), 0.0, 9, 0.2, 0.95),
        (effect(0.1, 0.5, n=10, confidence=0.9), 0.0, 9, 0.2, 0.9),
        (effect(0.2, 0.6, n=10), 0.0, 9, 0.1, 0.95),  # towards 0 it reaches less far than away from it
        (effect(0.2, 0.6, n=10), 0.7, 9, 0.3, 0.95),
        (effect(0.2, None, n=10), 0.0, 9, 0.1, 0.95),
        (effect(0.1, 0.5, n=1, fewest=1), 0.0, 1, 0.2, 0.95),
        (effect(0.1, 0.5, n=2, fewest=1), 0.0, 1, 0.2, 0.95),
        (effect(0.1, 0.5, n=None, fewest=1), 0.0, 1e6, 0.2, 0.95),
    ],
)
def test_a_p_value_is_students_with_the_width_on_the_side_of_no_effect(
    of: Estimate, null: float, df: float, half: float, confidence: float
) -> None:
    known = 2 * t.sf(abs(0.3 - null) / (half / t.isf((1 - confidence) / 2, df)), df)
    assert p_of_interval(of, null, "either") == pytest.approx(known)
    assert p_of_interval(of, null, "above" if null < 0.3 else "below") == pytest.approx(known)
    assert p_of_interval(of, null, "below" if null < 0.3 else "above") == 1.0


@pytest.mark.parametrize(("side", "p"), [("above", 1.0), ("below", 1.0)])
def test_a_value_that_is_the_null_value_speaks_for_no_side(side: Side, p: float) -> None:
    assert p_of_interval(effect(0.1, 0.5), 0.3, side) == p
    assert p_of_interval(effect(0.1, 0.3), 0.1, "either") is not None
    # Nor where one end alone is known, whichever that is.
    assert p_of_interval(effect(0.1, None), 0.3, side) == p
    assert p_of_interval(effect(None, 0.5), 0.3, "either") == 1.0


@pytest.mark.parametrize(
    "of", [effect(None, 0.5), effect(0.3, 0.6), effect(0.1, 0.5, confidence=None), effect(0.1, 0.5, n=7)]
)
def test_without_a_width_towards_no_effect_there_is_no_p_value(of: Estimate) -> None:
    assert p_of_interval(of, 0.0, "either") is None


@pytest.mark.parametrize(("hits", "n"), [(7, 9), (0, 5), (5, 5), (3, 20)])
@pytest.mark.parametrize("null", [0.0, 0.4, 1.0])
def test_of_an_exact_share_the_p_value_is_the_binomial_tests(hits: int, n: int, null: float) -> None:
    tails = [binomtest(hits, n, null, alternative=way).pvalue for way in ("greater", "less")]
    known = min(1.0, 2 * min(tails))
    assert p_of_interval(clopper_pearson(hits, n), null, "either") == pytest.approx(known)


@pytest.mark.parametrize("null", [-0.1, 1.1])
def test_of_a_share_that_is_held_against_no_share_the_interval_decides(null: float) -> None:
    share = clopper_pearson(12, 20)
    p = p_of_interval(share, null, "either")
    assert p is not None and share.value is not None
    bound = share.low if null < 0 else share.high
    assert bound is not None
    error = abs(share.value - bound) / t.isf(0.025, 19)
    assert p == pytest.approx(2 * t.sf(abs(share.value - null) / error, 19))


SHARE = {"unit": "share", "fewest": 1}


@pytest.mark.parametrize(
    ("of", "exact"),
    [
        (Estimate(0.5, 0.2, 0.8, n=10, **SHARE), True),  # type: ignore[arg-type]
        (Estimate(0.0, 0.0, 0.3, n=10, **SHARE), True),  # type: ignore[arg-type]
        (Estimate(1.0, 0.7, 1.0, n=10, **SHARE), True),  # type: ignore[arg-type]
        (Estimate(0.5, 0.2, 0.8, n=10, units=10, **SHARE), True),  # type: ignore[arg-type]
        (Estimate(0.5, 0.2, 0.8, n=10, units=5, **SHARE), False),  # type: ignore[arg-type]
        (Estimate(1.1, 0.2, 1.8, n=10, **SHARE), False),  # type: ignore[arg-type]
        (Estimate(-0.1, -0.2, 0.8, n=10, **SHARE), False),  # type: ignore[arg-type]
        (Estimate(0.5, 0.2, 0.8, n=10, confidence=None, **SHARE), False),  # type: ignore[arg-type]
        (Estimate(None, note="none", n=10, **SHARE), False),  # type: ignore[arg-type]
        (Estimate(0.5, 0.2, 0.8, n=10, unit="share", fewest=6), False),
        (Estimate(0.5, 0.2, 0.8, n=10, unit="share"), False),
        # Of how many answers must be known: the binomial test of none would find nothing.
        (Estimate(0.5, 0.2, 0.8, **SHARE), False),  # type: ignore[arg-type]
        (Estimate(0.5, 0.2, 0.8, n=10, unit="%", fewest=1), False),
    ],
)
def test_an_exact_share_is_one_of_independent_answers_with_an_interval_from_one_on(of: Estimate, exact: bool) -> None:
    assert exact_share(of) is exact


@pytest.mark.parametrize(
    ("low", "high", "sides"),
    [
        (0.1, 0.5, {"above": True, "below": False, "either": True}),
        (-0.5, -0.1, {"above": False, "below": True, "either": True}),
        (0.0, 0.5, {"above": False, "below": False, "either": False}),
        (-0.5, 0.0, {"above": False, "below": False, "either": False}),
        (0.1, None, {"above": True, "below": False, "either": True}),
        (None, -0.1, {"above": False, "below": True, "either": True}),
        (None, 0.5, {"above": False, "below": False, "either": False}),
    ],
)
def test_beyond_is_the_whole_interval_on_the_side_that_is_meant(
    low: float | None, high: float | None, sides: dict[Side, bool]
) -> None:
    for side, beyond in sides.items():
        assert finding(effect(low, high), side=side).beyond_null is beyond
        assert not finding(effect(low, high), side=side, null=None).beyond_null
        assert not finding(None, side=side).beyond_null


@pytest.mark.parametrize(
    ("low", "high", "null", "sides"),
    [
        (-0.2, 0.5, 0.0, {"above": 0.5, "below": 0.2, "either": 0.5}),
        (-0.5, 0.2, 0.0, {"above": 0.2, "below": 0.5, "either": 0.5}),
        (0.1, 0.5, 0.0, {"above": 0.5, "below": 0.0, "either": 0.5}),
        (0.1, 0.5, 1.0, {"above": 0.0, "below": 0.9, "either": 0.9}),
        (None, 0.5, 0.0, {"above": 0.5, "below": None, "either": None}),
        (-0.2, None, 0.0, {"above": None, "below": 0.2, "either": None}),
    ],
)
def test_excluded_is_what_lies_beyond_the_far_end(
    low: float | None, high: float | None, null: float, sides: dict[Side, float | None]
) -> None:
    for side, far in sides.items():
        assert excluded_above(finding(effect(low, high), side=side, null=null)) == far
    assert excluded_above(finding(effect(low, high, n=7))) is excluded_above(finding(None)) is None
    assert excluded_above(finding(effect(low, high), null=None)) is None


@pytest.mark.parametrize(
    ("fields", "word", "reason"),
    [
        ({"p": 0.05}, "found", ""),
        ({"p": 0.0501}, "cannot tell", "the interval lies beyond 0, but the test does not say so (p 0.0501)"),
        ({"p": None}, "cannot tell", "the interval lies beyond 0, but no p-value says how sure that is"),
        ({"p": 0.01, "adjusted": 0.2}, "cannot tell", f"the interval lies beyond 0, {MANY_CORRECTED}"),
        ({"p": 0.05, "adjusted": 0.2}, "cannot tell", f"the interval lies beyond 0, {MANY_CORRECTED}"),
        ({"p": 0.2, "adjusted": 0.01}, "found", ""),
        (
            {"p": 0.01, "adjusted": 0.0501, "null": -1.25},
            "cannot tell",
            f"the interval lies beyond -1.25, {MANY_CORRECTED}",
        ),
        ({"margin": 0.5}, "not found", ""),
        ({"margin": 0.4999}, "found", ""),
        ({"margin": None}, "found", ""),
        ({"side": "below"}, "not found", ""),
        ({"side": "below", "margin": 0.0}, "not found", ""),
        ({"side": "below", "margin": None}, "cannot tell", "the interval reaches what no effect would give"),
        ({"null": 0.2}, "cannot tell", WIDE),
        ({"null": 0.2, "margin": None}, "cannot tell", "the interval reaches what no effect would give"),
        ({"null": 0.1}, "cannot tell", WIDE),
        ({"null": 0.2, "margin": 0.0}, "cannot tell", "the interval lies on both sides of 0.2"),
        ({"null": 0.2, "margin": 0.0, "side": "below"}, "cannot tell", "the interval lies on both sides of 0.2"),
    ],
)
def test_a_verdict_with_its_reason(fields: dict[str, Any], word: str, reason: str) -> None:
    told = decided(finding(effect(0.1, 0.5), **fields))
    assert (told.verdict, told.reason) == (word, reason)
    assert (told.excluded is not None) == (word == "not found")
    assert told.needed is None or word == "cannot tell"


@pytest.mark.parametrize(
    ("fields", "word", "reason"),
    [
        ({"p": 0.05}, "found", ""),
        ({"p": 0.01, "adjusted": 0.06}, "cannot tell", "there is no number"),
        ({"p": 0.051, "reason": "too few rows"}, "cannot tell", "too few rows"),
        ({"p": None}, "cannot tell", "there is no number"),
    ],
)
def test_a_test_without_an_effect_can_find_and_never_exclude(fields: dict[str, Any], word: str, reason: str) -> None:
    told = decided(finding(None, **fields))
    assert (told.verdict, told.reason, told.excluded, told.needed) == (word, reason, None, None)


def test_what_an_interval_cannot_tell_is_told_first() -> None:
    assert (
        decided(finding(effect(0.1, 0.5, n=7), margin=9.0)).reason
        == "7 items of the 8 from which on its interval covers"
    )


def test_a_verdict_that_stands_is_not_worked_out_again() -> None:
    """What would tell is costly to find, and the same as before; what the correction leaves open is not."""
    open_now = decided(finding(effect(-0.1, 0.7)))
    assert (open_now.verdict, open_now.needed is not None) == ("cannot tell", True)
    found = decided(finding(effect(0.1, 0.5)))
    assert decided(open_now) is open_now and decided(found) is found
    less = decided(replace(found, adjusted=0.2))
    assert less.needed is not None and decided(replace(less, adjusted=0.9)).needed != less.needed
    absent = decided(finding(effect(-0.05, 0.05)))
    assert decided(replace(absent, margin=0.2, effect=effect(-0.05, 0.15))).excluded == pytest.approx(0.15)


def test_a_claim_takes_the_chance_value_of_its_effect() -> None:
    told = claim("k", effect(0.1, 0.5, chance=0.2), margin=0.0, **TEXTS)
    assert (told.null, told.p) == (0.2, p_of_interval(effect(0.1, 0.5), 0.2, "either"))
    assert claim("k", effect(0.1, 0.5, chance=0.2), null=0.0, **TEXTS).verdict == "found"
    assert claim("k", effect(0.1, 0.5, chance=0.2), null=0.0, p=0.3, **TEXTS).p == 0.3
    assert claim("k", effect(0.1, 0.5), null=0.0, side="below", **TEXTS).p == 1.0
    bare = claim("k", None, p=0.01, counted="rows", look="there", **TEXTS)
    assert (bare.verdict, bare.null, bare.side, bare.counted, bare.look) == ("found", None, "either", "rows", "there")
    assert (told.key, told.found, told.absent, told.unknown) == ("k", "it does", "it does not", "does it?")


def test_a_claim_without_a_value_has_no_size() -> None:
    gone = Estimate.not_estimable("3 answers", n=3)
    assert claim("k", gone, null=0.0, size="twice as likely", **TEXTS).size == ""
    assert claim("k", gone, null=0.0, **TEXTS).reason == "no value: 3 answers"
    assert claim("k", effect(0.1, 0.5), null=0.0, size="twice as likely", **TEXTS).size == "twice as likely"
    assert claim("k", None, size="twice as likely", **TEXTS).size == "twice as likely"


def test_a_claim_that_cannot_be_meant_is_refused() -> None:
    for margin in (-0.1, math.nan):
        with pytest.raises(ValueError, match=rf"^finding 'k': the margin must not be negative, got {margin!r}$"):
            claim("k", effect(0.1, 0.5), null=0.0, margin=margin, **TEXTS)
    missing = r"^finding 'k': its effect has no chance value; say with null= what no effect would give$"
    with pytest.raises(ValueError, match=missing):
        claim("k", effect(0.1, 0.5), **TEXTS)


def adjusted(*family: tuple[str, float | None, dict[str, Any]]) -> list[float | None]:
    placed = [(case, finding(effect(0.1, 0.5), p=p, **more)) for case, p, more in family]
    return [one.adjusted for one in corrected(placed)]


REST: dict[str, Any] = {"headline": False}


def test_headlines_share_the_level_among_cases_and_within_a_case() -> None:
    """Case "a" has two findings, "b" one: weights of 1/4, 1/4 and 1/2."""
    found = adjusted(("a", 0.01, {}), ("b", 0.03, {}), ("a", 0.02, {}))
    assert found == pytest.approx([0.04, 0.045, 0.045])
    assert adjusted(("a", 0.01, {})) == pytest.approx([0.01])
    assert adjusted(("a", 0.0, {}), ("a", 0.04, {})) == pytest.approx([0.0, 0.04])


def test_exploratory_findings_have_a_correction_of_their_own() -> None:
    found = adjusted(("a", 0.01, REST), ("a", 0.02, {}), ("b", 0.04, REST), ("b", 0.03, {}))
    assert found == pytest.approx([0.02, 0.04, 0.04, 0.04])


def test_controls_and_what_has_no_p_value_stay_as_they_are_and_count_for_nothing() -> None:
    control = finding(effect(0.1, 0.5), kind="control", p=0.001)
    family = [("a", control), ("a", finding(effect(0.1, 0.5), p=0.02)), ("b", finding(effect(0.1, 0.5), p=None))]
    found = corrected(family)
    assert found[0] is control and found[2] is family[2][1] and found[1].adjusted == pytest.approx(0.02)
    assert found[1].verdict == "found" and corrected([]) == []
    assert [one.verdict for one in corrected([("a", decided(finding(effect(0.1, 0.5), p=0.04)))] * 2)] == [
        "cannot tell"
    ] * 2


def with_power(units: int, halves: float, level: float = 0.05, reached: float = 0.05) -> int:
    """The fewest units, more than these, at which so many half widths of now are found in 80 % at ``level``."""

    def tells(n: int) -> bool:
        far = t.isf(level / 2, n - 1) + t.isf(0.2, n - 1)
        return bool(math.sqrt(n / units) * halves * t.isf(reached / 2, max(1, units - 1)) >= far)

    return next(n for n in range(units + 1, 10**5) if tells(n))


@pytest.mark.parametrize(
    ("of", "fields", "needed"),
    [
        (None, {}, None),
        (effect(-0.1, 0.7), {"null": None}, None),
        (Estimate(None, note="none", n=40), {}, None),
        (effect(-0.1, 0.7, n=None), {}, None),
        (effect(-0.1, 0.7, n=0), {}, None),
        (effect(-0.1, 0.7, n=7), {}, 8),
        (effect(-0.1, 0.7, n=3, fewest=6), {}, 6),
        (effect(None, None), {}, None),
        (effect(0.3, 0.3), {"null": 0.3}, None),
        # What has no end towards the null value is never found.
        (effect(None, 0.75, 0.25), {"margin": None}, None),
        (effect(0.0, 0.5, 0.25), {"margin": None, "null": 0.25}, None),
        (effect(-0.25, 0.75, 0.25), {"margin": None, "side": "below"}, None),
        (effect(-499.5, 501.5, 1.0), {"margin": None}, None),
    ],
)
def test_what_no_number_is_known_for_has_none(of: Estimate | None, fields: dict[str, Any], needed: int | None) -> None:
    assert units_that_would_tell(finding(of, **fields)) == needed


@pytest.mark.parametrize(
    ("of", "fields", "units", "halves"),
    [
        (effect(-0.25, 0.75, 0.25), {"margin": None}, 40, 1 / 2),
        (effect(-0.25, 0.75, 0.25, n=90, units=40), {"margin": None}, 40, 1 / 2),
        (effect(-0.25, 0.75, 0.25, n=8), {"margin": None}, 8, 1 / 2),
        (effect(-0.75, 0.25, -0.25), {"margin": None}, 40, 1 / 2),
        # The half towards the null value counts, whichever the other is.
        (effect(-0.25, 0.375, 0.25), {"margin": None}, 40, 1 / 2),
        (effect(-0.125, 0.75, 0.25), {"margin": None}, 40, 2 / 3),
        (effect(0.0, 0.5, 0.25), {"margin": None}, 40, 1),
        # Away from the null value the other half counts.
        (effect(-0.25, 1.0, 0.25), {"margin": 0.25, "side": "below"}, 40, 1),
        (effect(-0.75, 0.25, -0.25), {"margin": 0.25, "side": "above"}, 40, 1),
        # A margin that is narrow for these values keeps nothing from being found.
        (effect(-13.4, 33.4, 10.0, n=16), {"margin": 1.0, "side": "above"}, 16, 10 / 23.4),
    ],
)
def test_the_number_that_would_tell_finds_or_excludes_the_value_in_80_percent(
    of: Estimate, fields: dict[str, Any], units: int, halves: float
) -> None:
    assert units_that_would_tell(finding(of, **fields)) == with_power(units, halves)


@pytest.mark.parametrize(
    ("of", "fields", "units", "found", "kept"),
    [
        # Found above or below, or shown to be within the margin on both sides: distances in half widths.
        (effect(-0.5, 0.75, 0.125), {"margin": 0.4375}, 40, (0.2, -0.2), (0.5, 0.9)),
        (effect(-0.5, 1.0, 0.25), {"margin": 0.25}, 40, (1 / 3, -1 / 3), (0, 2 / 3)),
        (effect(-0.5, 1.0, 0.25), {"margin": 0.25, "side": "above"}, 40, (1 / 3,), (0,)),
        (effect(-0.25, 0.5, 0.125), {"margin": 0.125, "null": 0.125}, 40, (0, 0), (1 / 3, 1 / 3)),
        (effect(-0.125, 0.375, 0.125, n=6, fewest=6), {"margin": 0.375}, 6, (0.5, -0.5), (1, 2)),
        # Of one unit alone the first few degrees of freedom tell.
        (effect(-59, 69, 5, n=1, fewest=1), {"margin": None, "side": "above"}, 1, (5 / 64,), ()),
        (effect(-55, 73, 9, n=1, fewest=1), {"margin": None, "side": "above"}, 1, (9 / 64,), ()),
        (effect(-48, 80, 16, n=1, fewest=1), {"margin": None, "side": "above"}, 1, (1 / 4,), ()),
        (effect(-14, 114, 50, n=1, fewest=1), {"margin": None, "side": "above"}, 1, (50 / 64,), ()),
    ],
)
def test_what_may_be_found_or_excluded_is_told_by_either(
    of: Estimate, fields: dict[str, Any], units: int, found: tuple[float, ...], kept: tuple[float, ...]
) -> None:
    def power(n: int) -> float:
        scale = math.sqrt(n / units) * t.isf(0.025, max(1, units - 1))
        parts = [[t.cdf(way * scale - t.isf(0.025, n - 1), n - 1) for way in ways] for ways in (found, kept)]
        return float(sum(parts[0]) + (max(0.0, sum(parts[1]) - len(kept) + 1) if kept else 0.0))

    needed = next(n for n in range(units + 1, 10**4) if power(n) >= 0.8)
    assert units_that_would_tell(finding(of, **fields)) == needed


@pytest.mark.parametrize(("p", "told"), [(0.02, 0.2), (0.04, 0.041)])
def test_what_the_correction_leaves_open_needs_a_larger_t(p: float, told: float) -> None:
    """The p-value must fall by as much as the correction multiplies it with, below 5 %."""
    one = finding(effect(0.1, 0.5), p=p, adjusted=told)
    level = 0.05 * p / told
    assert units_that_would_tell(one) == with_power(40, 1, level, p)
    assert units_that_would_tell(replace(one, adjusted=None)) == with_power(40, 1, 0.05, p)
    assert units_that_would_tell(replace(one, effect=effect(0.1, 0.5, n=40, units=9))) == with_power(9, 1, level, p)
    for units, fewest in ((2, 1), (3, 1), (8, 8), (12, 8)):
        few = replace(one, effect=effect(0.1, 0.5, n=units, fewest=fewest), null=0.05, p=0.03, adjusted=0.5)
        assert units_that_would_tell(few) == with_power(units, 1, 0.003, 0.03)
    lone = replace(one, effect=effect(0.1, 0.5, n=1, fewest=1), p=0.0643, adjusted=None)
    assert units_that_would_tell(lone) == with_power(1, 1, 0.05, 0.0643)
    for lost in (None, 0.0, 1.0):
        assert units_that_would_tell(replace(one, p=lost)) is None
        assert units_that_would_tell(finding(clopper_pearson(20, 20), null=0.55, p=lost)) is None
    assert units_that_would_tell(replace(one, p=0.999999, adjusted=1.0)) is None


@pytest.mark.parametrize(
    ("hits", "n", "null", "side", "margin"),
    [
        (12, 20, 0.5, "either", None),
        (12, 20, 0.5, "either", 0.2),
        (8, 20, 0.5, "below", None),
        (10, 20, 0.45, "above", 0.2),
        (10, 20, 0.55, "above", 0.1),
    ],
)
def test_a_share_needs_what_its_exact_interval_needs(
    hits: int, n: int, null: float, side: Side, margin: float | None
) -> None:
    share = hits / n

    def power(m: int) -> float:
        low, high = np.array([share_limits(k / m, m) for k in range(m + 1)]).T
        found = {"above": low > null, "below": high < null, "either": (low > null) | (high < null)}[side]
        far = {"above": high - null, "below": null - low, "either": np.maximum(high - null, null - low)}[side]
        told = found | (far <= margin) if margin is not None else found
        return float(binom.pmf(np.arange(m + 1), m, share)[told].sum())

    needed = units_that_would_tell(finding(clopper_pearson(hits, n), null=null, side=side, margin=margin))
    assert isinstance(needed, int) and needed > n
    assert power(needed) >= 0.8 and (power(int(0.85 * needed)) < 0.8 or needed == n + 1)


@pytest.mark.parametrize("told", [0.0301, 0.0501, 0.06, 0.3])
def test_what_the_correction_leaves_open_of_a_share_needs_the_exact_test(told: float) -> None:
    level = 0.05 * 0.03 / told
    needed = units_that_would_tell(finding(clopper_pearson(16, 20), null=0.55, p=0.03, adjusted=told))
    assert isinstance(needed, int) and needed > 20

    def power(m: int) -> float:
        return sum(float(binom.pmf(k, m, 0.8)) for k in range(m + 1) if share_p(k / m, m, 0.55) <= level)

    assert power(needed) >= 0.8 and power(int(0.85 * needed)) < 0.8


@pytest.mark.parametrize("null", [0.0, 1.0, 1.5])
def test_a_share_that_is_held_against_what_no_answer_can_be_needs_a_larger_t(null: float) -> None:
    """One answer alone refutes a share of 0 or 1; a p-value above 0 is then of another test."""
    one = finding(clopper_pearson(15, 20), null=null, p=0.02, adjusted=0.2)
    assert units_that_would_tell(one) == with_power(20, 1, 0.005, 0.02)


def test_a_share_that_is_no_effect_never_tells_nor_does_one_on_the_other_side() -> None:
    assert units_that_would_tell(finding(clopper_pearson(10, 20), null=0.5, margin=None)) is None
    assert units_that_would_tell(finding(clopper_pearson(8, 20), null=0.5, margin=None, side="above")) is None
    assert units_that_would_tell(finding(clopper_pearson(12, 20), null=0.5, margin=None, side="below")) is None


@pytest.mark.parametrize(
    ("of", "fields"),
    [
        (clopper_pearson(5, 5), {"null": 0.5, "margin": None}),
        (clopper_pearson(5, 5), {"null": 0.5, "margin": None, "side": "above"}),
        # As many as there are would have told in most cases: here they did not, and one more is asked for.
        (effect(-0.01, 0.51, 0.25), {"margin": 0.49, "side": "above"}),
        (clopper_pearson(10, 20), {"null": 0.3, "margin": 0.4, "side": "above"}),
        (effect(0.1, 0.5), {"p": 1e-9}),
        (clopper_pearson(20, 20), {"null": 0.55, "p": 0.03}),
    ],
)
def test_where_few_are_missing_it_is_one(of: Estimate, fields: dict[str, Any]) -> None:
    assert of.n is not None and units_that_would_tell(finding(of, **fields)) == of.n + 1


@pytest.mark.parametrize(("role", "passed", "verdict"), [("positive", True, "found"), ("positive", False, "not found"), ("negative", True, "not found"), ("negative", False, "found")])  # fmt: skip  # noqa: E501
def test_a_control_says_whether_the_effect_was_seen_and_whether_it_held(role: Any, passed: bool, verdict: str) -> None:
    told = control_finding(Control(role, passed, "this", "that"), "bias.md")
    assert (told.key, told.kind, told.verdict) == (f"control.{role}", "control", verdict)
    assert (told.held, told.headline, told.page) == (passed, False, "bias.md")
    planted = "a planted effect" if role == "positive" else "no effect was planted"
    start = f"Control held ({planted})" if passed else f"CONTROL FAILED ({planted}), this audit is void"
    assert told.found == told.absent == told.unknown == f"{start}: expected this; observed that"
    assert control_finding(Control(role, passed, "this", "that")).page == ""


@pytest.mark.parametrize(
    ("excluded", "null", "side", "unit", "words"),
    [
        (0.03, 0.0, "either", "", "more than 0.030 is excluded"),
        (0.0301, 0.0, "either", "p", "more than 0.031 is excluded"),
        (0.03, 0.25, "either", "share", "more than 3\u00a0of 100 away from 25 is excluded"),
        (0.03, 1 / 3, "either", "", "more than 0.030 away from 0.33 is excluded"),
        (0.03, 0.5, "below", "share", "below 47\u00a0of 100 is excluded"),
        (0.035, 0.5, "below", "share", "below 46\u00a0of 100 is excluded"),
        (0.5, 0.5, "below", "share", "below 0\u00a0of 100 is excluded"),
        (0.1, -0.1, "above", "nats", "above 0\u00a0nats is excluded"),
        (12.3, 0.0, "either", "bits", "more than 13\u00a0bits is excluded"),
        (math.inf, 0.0, "either", "bits", None),
        (0.1, None, "either", "bits", ""),
    ],
)
def test_excluded_sizes_in_words(excluded: float, null: float | None, side: str, unit: str, words: str | None) -> None:
    told = excluded_words(excluded, null, side, Estimate(0.0, -1.0, 1.0, n=40, unit=unit))
    assert told == words if words is not None else told.startswith("more than")
    assert excluded_words(excluded, null, side, None) == ""
