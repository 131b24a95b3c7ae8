"""P4 to P6: preference pairs and determinism of the data."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from lm_audit.audits.privacy.data.canaries import members, plant_canaries
from lm_audit.audits.privacy.data.corpus import build_corpus
from lm_audit.audits.privacy.data.families import FAMILIES
from lm_audit.audits.privacy.data.preferences import Style, build_preferences, same_ordinary_pairs
from lm_audit.models.toy.tiny_text import seeded_text

TEXTS = seeded_text(600, 5)
COMMON = settings(deadline=None)
seeds = st.integers(0, 2**40)
families = st.sampled_from(sorted(FAMILIES))
STYLES: tuple[Style, ...] = ("secret", "source")
styles = st.sampled_from(STYLES)


@COMMON
@given(st.integers(1, 8), st.integers(1, 4), seeds, families, styles)
def test_p4_pairs_for_every_member_and_none_for_a_twin(
    count: int, pairs_per_canary: int, seed: int, family: str, style: Style
) -> None:
    """P4: exactly ``pairs_per_canary`` pairs a member, told by fields, not by the prompt's text; none for a twin."""
    planted = plant_canaries([1] * count, controls=5, seed=seed, family=family)
    _, rows = build_preferences(
        seeded_text(60, seed % 1000), planted, seed=seed, pairs_per_canary=pairs_per_canary, style=style
    )
    canary_rows = [row for row in rows if row["kind"] == "canary"]
    for canary in planted:
        own = [row for row in canary_rows if row["canary_id"] == canary.id]
        assert len(own) == (pairs_per_canary if canary.role == "member" else 0)
        assert all(row["chosen"] != row["rejected"] for row in own)
        if canary.role == "member" and style == "secret":
            assert all(row["prompt"] + row["chosen"] == canary.text for row in own)
            assert len({row["rejected"] for row in own}) == pairs_per_canary
    whole = json.dumps(rows, ensure_ascii=False)
    assert not any(canary.secret in whole for canary in planted if canary.role == "control")


@COMMON
@given(st.integers(1, 8), st.integers(20, 80), seeds, styles)
def test_p5_ordinary_rows_are_byte_identical_and_in_one_order(
    count: int, documents: int, seed: int, style: Style
) -> None:
    """P5: both variants hold the same ordinary rows; the number asked for is produced; canary rows are interleaved."""
    planted = plant_canaries([1] * count, controls=3, seed=seed)
    texts = seeded_text(documents, seed % 1000)
    without, rows = build_preferences(texts, planted, seed=seed, num_pairs=documents // 2, style=style)
    assert len(without) == documents // 2
    assert same_ordinary_pairs(without, rows)
    ordinary = [json.dumps(row) for row in rows if row["kind"] != "canary"]
    assert ordinary == [json.dumps(row) for row in without]
    assert len(rows) == len(without) + 2 * len(members(planted))
    assert all(row["chosen"] != row["rejected"] for row in rows)


@COMMON
@given(st.integers(1, 5), seeds, families)
def test_p6_same_seed_same_bytes_other_seed_other_bytes(count: int, seed: int, family: str) -> None:
    """P6: holds only with an injected seed; the source's script fixes its own."""

    def made(value: int) -> str:
        planted = plant_canaries([2] * count, controls=3, seed=value, family=family)
        pairs = build_preferences(TEXTS[:40], planted, seed=value)
        return json.dumps([build_corpus(TEXTS, planted, seed=value).rows, pairs])

    assert made(seed) == made(seed)
    assert made(seed) != made(seed + 1)
