"""Groups that are compared share nothing: clean items with a benchmark, held-out texts with members."""

from __future__ import annotations

import json
import random
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from lm_audit.audits.leakage import load_benchmark, made_up_benchmark, text_likelihood
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.clean import SHARED, clean_of, without
from lm_audit.audits.privacy.data.shared_runs import shared_runs
from lm_audit.audits.privacy.measure.membership_scored import MemberText, scored_membership, texts_of_files
from lm_audit.errors import DataError, DataWarning
from lm_audit.models import LanguageModel
from lm_audit.models.toy.tiny_model import tiny_model


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    return tiny_model()


def written(path: Path, benchmark: Benchmark) -> str:
    rows = [{"question": item.question, "choices": list(item.options), "answer": "A"} for item in benchmark.items]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def mixed(own: int, shared: int) -> Benchmark:
    """Clean items of which some are the benchmark's, in other case and with their options in another order."""
    fresh, seen = made_up_benchmark(own, seed=2).items, made_up_benchmark(24, seed=1).items[:shared]
    copies = [replace(i, id=f"copy-{i.id}", question=f" {i.question.upper()}", options=i.options[::-1]) for i in seen]
    return replace(made_up_benchmark(own, seed=2), items=(*fresh, *copies), places=())


def test_clean_items_of_the_whole_benchmark_are_left_out_and_told(tmp_path: Path) -> None:
    source = written(tmp_path / "set.jsonl", made_up_benchmark(24, seed=1))
    with pytest.warns(DataWarning, match=r"3 of 23 clean items are questions of .*set\.jsonl too, and are left out"):
        kept = clean_of(mixed(20, 3), source, None)
    assert kept.items == made_up_benchmark(20, seed=2).items and kept.excluded[SHARED] == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert clean_of(kept, source, None) is kept
    with pytest.raises(DataError, match="24 of 24 clean items are questions of"):
        clean_of(load_benchmark(source), source, None)


def test_text_likelihood_leaves_them_out_too(tiny: LanguageModel) -> None:
    benchmark = made_up_benchmark(24, seed=1)
    apart = text_likelihood(tiny, benchmark, clean=mixed(8, 0), seed=0)
    shared = text_likelihood(tiny, benchmark, clean=mixed(8, 2), seed=0)
    name = "leakage.text.min_k20.auc"
    assert shared.metrics[name] == apart.metrics[name]
    assert f"Warning: 2 clean items were left out: {SHARED}." in shared.notes
    with pytest.raises(DataError, match="clean items are ones that the model cannot have seen"):
        text_likelihood(tiny, benchmark, clean=benchmark)


def test_one_question_with_other_options_is_another_item() -> None:
    [item] = made_up_benchmark(1, seed=1).items
    other = replace(item, options=("red", "green", "blue", "grey"))
    clean = replace(made_up_benchmark(1, seed=1), items=(other,))
    assert without(clean, {(item.question, *item.options)}, "set").items == (other,)


def prose(seed: int, words: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(words)]


@pytest.mark.parametrize("start", range(0, 45, 5))
def test_a_run_of_39_words_is_found_wherever_it_begins(start: int) -> None:
    book = prose(1, 120)
    member, other = " ".join(book), " ".join([*prose(2, 30), *book[start : start + 39], *prose(3, 30)])
    found = shared_runs([member], [other.upper().replace(" ", ",\n "), " ".join(prose(4, 90))])
    assert found is not None and (found.sharing, found.held_out) == (1, 2)
    assert shared_runs([member], [" ".join(prose(4, 90)), " ".join(book[start : start + 19])]) is None


def test_scripts_without_spaces_share_runs_of_characters() -> None:
    rng = random.Random(5)
    text = "".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(200))
    assert shared_runs([text], [text[50:120]]) is not None
    assert shared_runs([text[:90]], [text[100:]]) is None


def test_overlapping_chunks_of_member_files_are_told(tmp_path: Path, tiny: LanguageModel) -> None:
    book = prose(7, 400)
    chunks = [" ".join(book[k : k + 55]) for k in range(0, 15 * 20, 15)]
    sides = {"in.jsonl": chunks[::2], "out.jsonl": chunks[1::2]}
    paths = [tmp_path / name for name in sides]
    for path, texts in zip(paths, sides.values(), strict=True):
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    with pytest.warns(DataWarning, match="10 of 10 held-out texts share a run of 20 words or more with members"):
        texts_of_files(*paths, limit=None, seed=0)
    given = [MemberText(f"{k}", text, k % 2 == 0) for k, text in enumerate(chunks)]
    assert any("held-out texts share a run" in note for note in scored_membership(tiny, given).notes)
