"""What always holds of the report's small parts."""

from __future__ import annotations

import base64
import gzip
import json
import math
import unicodedata
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from lm_audit.report.charts.coloured_tokens import token_view
from lm_audit.report.comparison.direction import turn
from lm_audit.report.comparison.interval_difference import FEWEST, difference_of
from lm_audit.report.in_pytest.terminal import summary_lines
from lm_audit.report.page.interval_bar import bar, common_scale
from lm_audit.report.page.packing import fit, pack_rows
from lm_audit.report.wording.names import anchor, visible
from lm_audit.report.wording.numbers import interval_text, number, value_text
from lm_audit.runstore.records import Attempt, CaseRecord, Run
from lm_audit.stats.estimate import Estimate

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
text = st.text(st.characters(codec=None), max_size=80)
sizes = st.floats(-1e6, 1e6)


@st.composite
def estimates(draw: st.DrawFn, values: st.SearchStrategy[float] = finite) -> Estimate:
    """An estimate with a value, with or without an interval, in any direction."""
    low, value, high = sorted(draw(st.tuples(values, values, values)))
    better = draw(st.sampled_from(["higher", "lower", "target:50", None]))
    chance = draw(st.none() | values)
    estimate = Estimate(value, low, high, draw(st.none() | st.integers(0, 10**6)), better=better, chance=chance)
    return estimate if draw(st.booleans()) else replace(estimate, low=None, high=None)


@given(text)
def test_visible_text_has_no_control_characters_and_is_stable(raw: str) -> None:
    shown = visible(raw)
    hidden = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    assert all(c in "\n\t\u200d" or unicodedata.category(c) not in hidden for c in shown)
    assert visible(shown) == shown
    shown.encode()


@given(text, text)
def test_anchors_are_safe_and_tell_names_apart(one: str, other: str) -> None:
    assert anchor("case", one).replace("-", "").isalnum() and anchor("case", one).isascii()
    assert (anchor("case", one) == anchor("case", other)) == (one == other)


@given(st.floats(-1e300, 1e300))
def test_numbers_are_short_and_close(value: float) -> None:
    shown = number(value)
    assert len(shown) <= 10
    assert math.isclose(float(shown.replace("\u2212", "-")), value, rel_tol=6e-3, abs_tol=1e-300)


@given(estimates())
def test_texts_and_bars_exist_for_every_estimate(estimate: Estimate) -> None:
    assert value_text(estimate)
    assert bool(interval_text(estimate)) == (estimate.low is not None)
    drawn = bar(estimate, common_scale([estimate]))
    assert "nan" not in drawn.lower().replace("nance", "") and "inf" not in drawn.split("</title>")[1]


@given(estimates(st.floats(-9e5, 9e5)))
def test_value_and_ends_have_the_decimals_that_the_width_allows(estimate: Estimate) -> None:
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return
    texts = [value_text(estimate), *interval_text(estimate)[1:-1].split(", ")]
    width = estimate.high - estimate.low
    for shown, value in zip(texts, (estimate.value, estimate.low, estimate.high), strict=True):
        assert value is not None
        assert abs(float(shown.replace("\u2212", "-")) - value) <= max(width / 20, 1e-8, abs(value) * 6e-3)
    if width > 1e-6 and max(abs(estimate.low), abs(estimate.high)) > 1e-3:
        whole = all(v == int(v) for v in (estimate.value, estimate.low, estimate.high) if v is not None)
        assert whole or len({len(shown.partition(".")[2]) for shown in texts}) == 1


@given(estimates(st.floats(-9e5, 9e5)))
def test_an_end_that_excludes_chance_is_never_written_like_chance(estimate: Estimate) -> None:
    low, high, chance = estimate.low, estimate.high, estimate.chance
    if low is None or high is None or chance is None or low == high or max(map(abs, (low, high))) < 1e-3:
        return
    shown = [float(end.replace("\u2212", "-")) for end in interval_text(estimate)[1:-1].split(", ")]
    for end, text in zip((low, high), shown, strict=True):
        if abs(end - chance) > max(2e-9, 1e-6 * max(abs(end), abs(chance))):
            assert (text > round(chance, 9)) == (end > chance) or text != round(chance, 9)


row_values = st.none() | st.integers(-(2**60), 2**60) | finite | st.booleans() | text
rows = st.lists(st.dictionaries(text, row_values, max_size=4).map(lambda row: {"item": "i", **row}), max_size=20)


@given(rows)
def test_packed_rows_unpack_to_the_same_rows_but_for_rounding(made: list[dict[str, object]]) -> None:
    packed = pack_rows(made)
    content = json.loads(gzip.decompress(base64.b64decode(packed.text)).decode("utf-8", "surrogatepass"))
    assert packed.shown == packed.total == len(made)
    for at, row in enumerate(made):
        back = {name: column[at] for name, column in zip(content["columns"], content["data"], strict=True)}
        for name, value in row.items():
            same = math.isclose(back[name], value, rel_tol=1e-5) if isinstance(value, float) else back[name] == value
            assert same, (name, value, back[name])


@settings(max_examples=25)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=5), st.integers(2_000, 40_000))
def test_rows_are_cut_to_the_budget_but_never_to_nothing(counts: list[int], budget: int) -> None:
    tables = {str(k): [{"item": f"i{k}-{j}", "x": j * 0.37} for j in range(n)] for k, n in enumerate(counts)}
    packed = fit({name: pack_rows(table) for name, table in tables.items()}, tables.__getitem__, budget)
    for name, table in tables.items():
        assert packed[name].total == len(table) and packed[name].shown >= min(50, len(table))


@given(estimates(sizes), estimates(sizes))
def test_a_difference_turns_its_sign_with_the_runs(a: Estimate, b: Estimate) -> None:
    b = replace(b, better=a.better)
    forth, p_forth = difference_of(a, b)
    back, p_back = difference_of(b, a)
    assert forth.value is not None and back.value is not None
    assert math.isclose(forth.value, -back.value, rel_tol=1e-9, abs_tol=1e-9)
    if forth.low is not None and forth.high is not None:
        assert forth.low <= forth.value <= forth.high
        # Intervals of a handful of values decide nothing, whichever run holds them.
        few = min((e.n for e in (a, b) if e.n is not None), default=FEWEST) < FEWEST
        assert (p_forth is None) == (p_back is None) == few
        if p_forth is not None and p_back is not None:
            assert 0 <= p_forth <= 1
            assert math.isclose(p_forth, p_back, rel_tol=1e-6, abs_tol=1e-12)


@given(estimates(sizes))
def test_turned_intervals_stay_upright(estimate: Estimate) -> None:
    value, low, high = turn(estimate).estimate(estimate)
    assert value is not None
    assert low is None or high is None or low <= value <= high
    if estimate.better and estimate.better.startswith("target"):
        assert value >= 0


@given(st.lists(st.tuples(text, st.none() | finite), max_size=12), st.sampled_from(["diverging", "sequential"]))
def test_tokens_of_larger_size_are_never_paler(tokens: list[tuple[str, float | None]], scale: str) -> None:
    data = {"frames": [{"label": "x", "tokens": [{"text": t, "value": v} for t, v in tokens]}], "scale": scale}
    spans = token_view(data).frames[0].tokens
    depth = [(abs(v), int(span.css[-1])) for (_, v), span in zip(tokens, spans, strict=True) if v is not None]
    ranked = sorted(depth)
    assert all(one[1] <= other[1] for one, other in pairwise(ranked))


@settings(max_examples=30)
@given(st.lists(st.tuples(text, text), max_size=6), st.integers(40, 140))
def test_the_summary_fits_any_terminal(cases: list[tuple[str, str]], width: int) -> None:
    records = tuple(
        CaseRecord(f"a.py::{name}{k}", "bias", model, "cpu", None, Attempt(1, "passed", "main-1", 1.0, headline=None))
        for k, (name, model) in enumerate(cases)
    )
    lines = summary_lines(Run("r", Path("."), 1, {}, records), width=width)
    assert all(visible(line) == line for line in lines)
