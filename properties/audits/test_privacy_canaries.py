"""P1 to P3: canaries and where they go.

The source design's statements are corrected where they are false or say nothing; each test names the number it stands
for.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lm_audit.audits.privacy.data.canaries import Canary, generate_canaries, plant_canaries
from lm_audit.audits.privacy.data.corpus import build_corpus
from lm_audit.audits.privacy.data.families import FAMILIES
from lm_audit.audits.privacy.data.insertion import canary_ratio, check_ratio, gaps, gaps_are_even, insertion_positions
from lm_audit.audits.privacy.data.manifest import Manifest, read_manifest, write_manifest
from lm_audit.errors import DataError, UsageError

families = st.sampled_from(sorted(FAMILIES))
seeds = st.integers(0, 2**63)
COMMON = settings(deadline=None)


@COMMON
@given(st.integers(1, 500), seeds, families)
def test_p1_count_uniqueness_and_no_secret_inside_another_text(n: int, seed: int, family: str) -> None:
    """P1: n canaries; the source's statement says nothing of uniqueness."""
    canaries = generate_canaries(n, seed=seed, family=family)
    assert len(canaries) == n
    for field in ("id", "text", "secret"):
        assert len({getattr(canary, field) for canary in canaries}) == n
    whole = "\n".join(canary.text for canary in canaries)
    for canary in canaries:
        start, end = canary.secret_span
        assert canary.text[start:end] == canary.secret
        assert whole.count(canary.secret) == 1


CHARACTERS = st.characters(exclude_categories=["Cs"])
texts = st.text(CHARACTERS, min_size=0, max_size=30)


@COMMON
@given(texts, st.text(CHARACTERS, min_size=1, max_size=20), texts, seeds)
@example(" \n", "a\nb", "\u2028 ", 0)
@example("\r\n", "\x85", "\x00", 2)
def test_p1_manifest_gives_back_any_text_exactly(
    tmp_path_factory: pytest.TempPathFactory, before: str, secret: str, after: str, seed: int
) -> None:
    """P1: the source's files carry a line prefix, so that what is read is not what was written."""
    text = before + secret + after
    canary = Canary("free-0", "code", text, secret, (len(before), len(before) + len(secret)), "member", 3)
    path = tmp_path_factory.mktemp("p1") / "manifest.jsonl"
    manifest = Manifest((canary,), seed)
    write_manifest(manifest, path)
    assert read_manifest(path) == manifest


def test_p1_half_a_surrogate_pair_is_no_text(tmp_path: Path) -> None:
    canary = Canary("free-0", "code", "Canary \ud800", "\ud800", (7, 8), "member", 3)
    path = tmp_path / "manifest.jsonl"
    write_manifest(Manifest((canary,), 0), path)
    with pytest.raises(DataError, match="surrogate"):
        read_manifest(path)


@COMMON
@given(st.integers(1, 60), st.integers(0, 60), seeds, families)
def test_p2_same_seed_same_canaries_and_prefix_stability(n: int, more: int, seed: int, family: str) -> None:
    """P2: the source's generator takes no seed; ours is pure, and more canaries never change the first ones."""
    assert generate_canaries(n + more, seed=seed, family=family)[:n] == generate_canaries(n, seed=seed, family=family)


@COMMON
@given(seeds, seeds, families)
def test_p2_different_seeds_share_no_secret(first: int, second: int, family: str) -> None:
    """P2: another seed is another draw (a shared secret has probability below 1e-5 even in the smallest family)."""
    if first != second:
        one, two = (generate_canaries(5, seed=seed, family=family) for seed in (first, second))
        assert not {c.secret for c in one} & {c.secret for c in two}


def test_p2_independent_of_the_hash_seed() -> None:
    """P2: a new process with another PYTHONHASHSEED draws the same canaries."""
    code = """from lm_audit.audits.privacy.data.canaries import generate_canaries
print(generate_canaries(5, seed=3, family='sentence'))"""
    root = Path(__file__).resolve().parents[2]
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=root,
            env={"PYTHONHASHSEED": value, "PYTHONPATH": str(root / "harness")},
        ).stdout
        for value in ("0", "1", "4242")
    }
    assert outputs == {f"{generate_canaries(5, seed=3, family='sentence')}\n"}


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 30_000), st.data())
@example(19_999, None)
@example(10_199, None)
def test_p3_gaps_differ_by_at_most_one(n: int, data: st.DataObject) -> None:
    """P3: false for the source's spacing (n=19,999, k=200: tail gap 298 of average 100); true for floor(i n / k)."""
    k = {19_999: 200, 10_199: 102}[n] if data is None else data.draw(st.integers(1, n))
    positions = insertion_positions(n, k)
    found = gaps(positions, n)
    assert len(positions) == k
    assert sum(found) == n
    assert max(found) - min(found) <= 1
    assert gaps_are_even(positions, n)
    assert positions == [i * n // k for i in range(k)]


@COMMON
@given(st.integers(1, 200), st.integers(1, 5), seeds)
def test_p3_rows_of_a_corpus_keep_order_and_spacing(n: int, k: int, seed: int) -> None:
    """P3: in the file itself, documents keep their order and every member stands where the positions say."""
    documents = [f"document {i}" for i in range(n)]
    canaries = generate_canaries(k, seed=seed)
    share = canary_ratio(n, k)
    if share > 0.01:
        try:
            build_corpus(documents, canaries, seed=seed)
        except UsageError as error:
            assert "1%" in str(error)
            return
        raise AssertionError("a share above 1% was accepted")
    corpus = build_corpus(documents, canaries, seed=seed)
    assert [text for text, mark in corpus.rows if mark is None] == documents
    assert sorted(mark for _, mark in corpus.rows if mark) == sorted(c.id for c in canaries)


@COMMON
@given(st.integers(1, 10**6), st.integers(0, 10**6))
@example(124, 1)
@example(99, 1)
def test_ratio_limits_follow_the_unique_share(n: int, k: int) -> None:
    """The share k / (n + k) binds: ok up to 0.8%, warn up to 1%, refused above; k / n is never below it."""
    share = canary_ratio(n, k)
    assert share <= canary_ratio(n, k, denominator="corpus")
    if k * 100 > n + k:
        try:
            check_ratio(share)
        except UsageError:
            return
        raise AssertionError("a share above 1% was accepted")
    assert check_ratio(share) == ("warn" if k * 1000 > 8 * (n + k) else "ok")


@COMMON
@given(st.lists(st.integers(1, 16), min_size=1, max_size=20), st.integers(0, 40), seeds, families)
def test_planting_keeps_counts_and_separates_roles(
    repetitions: list[int], controls: int, seed: int, family: str
) -> None:
    """Roles are shuffled, the multiset of repetitions is kept, twins are never repeated."""
    planted = plant_canaries(repetitions, controls=controls, seed=seed, family=family)
    members = [c for c in planted if c.role == "member"]
    assert sorted(c.repetitions for c in members) == sorted(repetitions)
    assert len(planted) - len(members) == controls
    assert all(c.repetitions == 0 for c in planted if c.role == "control")
