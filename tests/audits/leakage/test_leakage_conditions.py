"""The conditions end to end on the toy model: odd items, exclusions, rows as they come, published aggregation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lm_audit.audits.leakage import (
    Benchmark,
    Item,
    chat_opening,
    completions,
    dataset_score,
    made_up_benchmark,
    measure_memorisation,
    memorisation_evidence,
    option_order,
    overview_evidence,
    probe,
    published_memorisation,
    row_order,
    row_order_test,
    style_shares,
    text_likelihood,
)
from lm_audit.audits.leakage.half_option.token_bytes import TokenBytes
from lm_audit.audits.leakage.half_option.variants import strangers
from lm_audit.audits.leakage.items.item import full_text
from lm_audit.audits.leakage.items.style import sorted_items, too_many_sorted
from lm_audit.errors import DataError, UsageError
from lm_audit.models import LanguageModel, load_tokenizer
from lm_audit.models.toy.tiny import train_tiny
from lm_audit.models.toy.tiny_model import tiny_model
from tests.present import present


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    return tiny_model()


ODD = (
    Item("1", "a", "Which lamp is red?", ("the small lamp", "the old lamp", "the round lamp"), "A,C"),
    Item("2", "a", "Pick one", ("5", "7", "长", "x"), "B"),
    Item("3", "a", "Two alike", ("the drum", "the drum", "the coin"), "A"),
    Item("4", "b", "Which hold?", ("a red coin", "a blue coin", "Both A and B"), "C"),
    Item("5", "b", "选出水果", ("苹果树", "大石头", "以上都对", "小木头"), "A"),
    Item("6", "b", "Too long " * 80, ("one", "two"), ""),
    Item("7", "b", "Ten options", tuple(f"the {w} one" for w in "abcdefghij"), "J"),
)
BENCHMARK = Benchmark("odd", ODD, ("a", "b", "empty"), 7, 7)


def test_odd_items_are_measured_or_listed(tiny: LanguageModel) -> None:
    result = measure_memorisation(tiny, BENCHMARK, seed=0)
    assert result.excluded == {"a:3": "options A and B are equal", "b:6": "longer than the model reads"}
    evidence = memorisation_evidence(result)
    assert any("cannot be shuffled" in note and "b:4" in note for note in evidence.notes)
    # Items 1, 2, 5, 7 can be shuffled.
    assert evidence.metrics["leakage.order_effect.logprob"].n == 4
    assert evidence.metrics["leakage.hits.original"].n == 5
    assert evidence.metrics["leakage.order_effect.logprob.detectable"].value is not None
    names = {figure.name for figure in evidence.figures}
    assert {"conditions_hits", "distribution", "files", "most_memorised", "style"} <= names


def test_shuffles_show_the_same_options(tiny: LanguageModel) -> None:
    table = measure_memorisation(tiny, BENCHMARK, seed=0).table
    for _, group in table.groupby("base"):
        wanted = sorted(group[group["condition"] == "original"]["base_option"])
        for _, some in group.groupby("condition"):
            assert sorted(some["base_option"]) == wanted
    anchored = table[(table["item_id"] == "5") & (table["base_option"] == 2)]
    shuffled = anchored[anchored["condition"].str.startswith("shuffled")]
    assert all("\nC. " in prefix and "\nD. " not in prefix for prefix in shuffled["prefix"])


def test_rows_are_handed_on_while_the_rest_is_unmeasured(tiny: LanguageModel) -> None:
    class Stop(Exception):
        pass

    kept: list[Any] = []

    def keep(rows: Any) -> None:
        kept.extend(rows)
        if len(kept) > 100:
            raise Stop

    with pytest.raises(Stop):
        measure_memorisation(tiny, made_up_benchmark(40, seed=0), seed=0, on_rows=keep)
    assert len({row["item"] for row in kept}) == len(kept)
    assert len({row["question"] for row in kept}) == 8


def test_published_scores_are_the_sources_aggregation(tiny: LanguageModel) -> None:
    evidence = published_memorisation(tiny, BENCHMARK, seed=0)
    usable = [item for item in ODD if item.id != "6"]
    table = probe(tiny, usable, rule="as_published")
    hits = table.groupby(["file", "item_id"])["hit"].sum()
    files = [hits["a"].tolist(), hits["b"].tolist(), []]
    assert evidence.metrics["leakage.published.score"].value == pytest.approx(dataset_score(files, "files"))
    assert evidence.metrics["leakage.published.score_by_items"].value == pytest.approx(dataset_score(files))
    difference = evidence.metrics["leakage.published.mitigation"].value
    original, shuffled = (evidence.metrics[f"leakage.published.{x}"].value for x in ("score", "score_shuffled"))
    assert difference == pytest.approx(present(original) - present(shuffled))
    assert {row["condition"] for row in evidence.rows} == {"original", "shuffled-1", "other_item"}


@pytest.mark.parametrize("cut", ["source", "token", "word"])
def test_prefix_and_suffix_join_to_the_text(tiny: LanguageModel, cut: str) -> None:
    table = probe(tiny, ODD[:3], cut=cut)  # type: ignore[arg-type]
    for row in table.to_dict("records"):
        item = ODD[int(row["item_id"]) - 1]
        slot = "ABCD".index(row["option"])
        assert (row["prefix"] + row["suffix"]).endswith(item.options[slot])
        assert row["suffix"]
        # A cut between tokens may stand after a space; as text, the space would move to the suffix.
        ids = [tiny.tokenizer(row[side], add_special_tokens=False)["input_ids"] for side in ("prefix", "suffix")]
        [score] = tiny.loglikelihood([tuple(ids) if cut == "token" else (row["prefix"], row["suffix"])])
        assert row["suffix_logprob"] == pytest.approx(score.total, abs=1e-3)


def test_a_byte_model_agrees_with_plain_decoding(tiny: LanguageModel) -> None:
    table = probe(tiny, ODD[:2])
    [written] = {len(tiny.generate([row["prefix"]], max_new_tokens=1)[0].token_ids) for row in table.to_dict("records")}
    assert written == 1
    for row in table.to_dict("records"):
        [generated] = tiny.generate([list(tiny.tokenizer(row["prefix"])["input_ids"])], max_new_tokens=1)
        assert row["predicted_id"] == generated.token_ids[0]
        assert row["hit"] == (row["rank"] == 0)
        assert (row["greedy_bytes"] > 0) == row["hit"]


def test_template_mode_opens_the_assistants_turn(tiny: LanguageModel) -> None:
    opening = chat_opening(tiny.tokenizer)
    table = probe(tiny, ODD[:1], cut="token", opening=opening)
    assert all(prefix.startswith(opening + "Which lamp") for prefix in table["prefix"])


def test_bytes_of_real_tokens() -> None:
    tokenizer = load_tokenizer("smollm2")
    tokens = TokenBytes(tokenizer)
    for text in ("The café costs 5 €.", " naïve 东京\n\n x", "可直接归属于"):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert b"".join(tokens.bytes_of(i) or b"" for i in ids) == text.encode()
    assert tokens.bytes_of(present(tokenizer.eos_token_id)) is None


def test_strangers_lend_within_a_file_and_never_to_themselves() -> None:
    items = made_up_benchmark(9, seed=0).items
    borrowed = strangers(items, seed=1)
    assert sorted(borrowed) == list(range(9))
    assert all(here != there for here, there in enumerate(borrowed))
    assert strangers(items[:1], seed=1) == [0]


def test_a_single_item_has_no_baseline(tiny: LanguageModel) -> None:
    evidence = memorisation_evidence(measure_memorisation(tiny, Benchmark("one", ODD[:1], ("a",), 1, 1), seed=0))
    assert evidence.metrics["leakage.hits.other_item"].value is None
    assert evidence.metrics["leakage.mitigation_share"].value is None


def test_completions_and_texts(tiny: LanguageModel) -> None:
    written = completions(tiny, BENCHMARK, seed=0)
    assert len(written.rows) == 2 * sum(len(ODD[k].options) for k in (0, 1, 3, 4, 6))
    assert all(len(row["wrote"]) <= len(row["truth"]) for row in written.rows)
    texts = text_likelihood(tiny, BENCHMARK, seed=0)
    assert texts.metrics["leakage.ngram_accuracy"].n == 6
    assert "no AUC" in texts.notes[0]
    perplexity = texts.metrics["leakage.text.perplexity"].value
    assert perplexity is not None and 1 < perplexity < 300


def test_option_order_in_passes(tiny: LanguageModel) -> None:
    evidence = option_order(tiny, made_up_benchmark(12, seed=3), seed=0)
    assert [row["n_orders"] for row in evidence.rows] == [24] * 12
    assert evidence.metrics["leakage.option_order.first"].chance == pytest.approx(1 / 24)
    assert present(evidence.metrics["leakage.option_order_unsorted.place"].n) <= 12


def test_sorted_rows_are_refused(tiny: LanguageModel) -> None:
    with pytest.raises(DataError, match="sorted by alphabet"):
        row_order_test(tiny, ["a x", "b yy", "c z", "d w"], shards=2, permutations=3, seed=0)
    with pytest.raises(UsageError, match="at least two rows a shard"):
        row_order_test(tiny, ["b", "a"], shards=2, permutations=3, seed=0)
    evidence = row_order(tiny, made_up_benchmark(12, seed=0), shards=3, permutations=4, seed=0)
    assert [row["kind"] for row in evidence.rows] == ["pair"] * 6 + ["shard"] * 3
    assert present(evidence.metrics["leakage.row_order.p_fisher"].value) > 0
    assert evidence.metrics["leakage.row_order.swap_gain.p"].n == 6
    assert any("also rise where neighbours share a theme" in note for note in evidence.notes)
    assert any("p_fisher can reach no verdict here" in note for note in evidence.notes)


def test_row_order_reads_long_shards_in_windows(tiny: LanguageModel) -> None:
    rows = [f"{k * 7 % 10} " + "x" * (100 + k * 5 % 13) for k in range(12)]
    result = row_order_test(tiny, rows, shards=1, permutations=2, seed=0)
    assert len(result.canonical) == 1 and np.isfinite(result.canonical[0])
    assert result.t_test.value is None and "no spread" in (result.t_test.note or "")


def test_the_overview_adjusts_for_the_number_of_benchmarks(tiny: LanguageModel) -> None:
    results = [measure_memorisation(tiny, made_up_benchmark(8, seed=s), seed=0, orders=1) for s in (0, 1)]
    evidence = overview_evidence(results[:1] * 2, "tiny")
    raw, adjusted = evidence.figures[0].data["rows"][0]["p"], evidence.figures[0].data["rows"][0]["holm"]
    assert adjusted == pytest.approx(min(1.0, 2 * raw))
    assert evidence.metrics["leakage.benchmarks_found"].n == 2


def test_style_is_held_against_chance() -> None:
    rising = [Item(str(k), "f", "q", ("a", "bb", "ccc", "dddd")) for k in range(6)]
    styles = {share.style: share for share in style_shares(rising)}
    assert styles["short_to_long"].followed == 6
    assert styles["short_to_long"].expected == pytest.approx(1 / 24)
    assert styles["short_to_long"].p_value == pytest.approx((1 / 24) ** 6)
    assert styles["numbers_up"].items == 0 and styles["numbers_up"].p_value is None


def test_options_that_are_always_the_same_in_the_same_order_are_a_style() -> None:
    def item(k: int, *options: str) -> Item:
        return Item(str(k), "f", f"Question {k}?", options)

    answers = [item(k, "Yes", "no", "maybe") for k in range(6)]
    drawn = [item(10 + k, *options) for k, options in enumerate((("c", "b", "d"), ("b", "d", "c"), ("x", "w", "z")))]
    [alike] = [share for share in style_shares([*answers, *drawn]) if share.style == "always_alike"]
    # The first is what the others are held against, and options in two orders have no usual one.
    assert (alike.followed, alike.items) == (5, 5) and alike.p_value == pytest.approx((1 / 6) ** 5)
    assert too_many_sorted([alike]) == ["always_alike"]
    turned = item(7, "yes", "maybe", "no")
    assert sorted_items([*answers, *drawn, turned]) == [True] * 6 + [False] * 4


def counted(n: int, seed: int, *, sorted_options: bool = True) -> Benchmark:
    """Questions with numbers as options, ascending or in an order that chance gave."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(n):
        numbers = rng.choice(np.arange(10, 100), 4, replace=False)
        texts = tuple(str(number) for number in (np.sort(numbers) if sorted_options else numbers))
        found.append(Item(str(k), "f", f"Day {rng.integers(100, 1000)}: how many?", texts, "A"))
    return Benchmark("counted", tuple(found), ("f",), n, n)


@pytest.fixture(scope="module")
def counting() -> LanguageModel:
    """A model that has learnt from other questions that numbers ascend."""
    texts = [full_text(item) for item in counted(400, 1).items]
    return train_tiny(tiny_model(), texts, seed=0, epochs=3, lr=2e-3, batch_size=16)


def test_a_model_that_sorts_is_not_said_to_have_seen_sorted_options(counting: LanguageModel) -> None:
    new = counted(24, 2)
    remembered = measure_memorisation(counting, new)
    by_rank, by_score = option_order(counting, new, seed=0), memorisation_evidence(remembered)
    assert present(by_rank.metrics["leakage.option_order.place"].low) > 0.5
    for evidence in (by_rank, by_score):
        [finding] = evidence.findings
        assert finding.verdict == "cannot tell" and finding.metric is not None and "_unsorted" in finding.metric
        assert "the options of all questions are sorted" in finding.reason
    overview = overview_evidence([remembered], "counting")
    assert overview.metrics["leakage.benchmarks_found"].value == 0


def test_where_some_options_are_sorted_the_others_decide(counting: LanguageModel) -> None:
    mixed = (*counted(16, 2).items, *counted(24, 3, sorted_options=False).items)
    items = tuple(replace(item, id=str(k)) for k, item in enumerate(mixed))
    evidence = option_order(counting, Benchmark("mixed", items, ("f",), 40, 40), seed=0)
    [finding] = evidence.findings
    assert finding.verdict != "found" and finding.effect is not None
    assert finding.effect == evidence.metrics["leakage.option_order_unsorted.place"]
    assert finding.effect.n is not None and finding.effect.n <= 24
    assert finding.size.endswith("questions with sorted options aside, since any model expects these")


def test_an_order_that_chance_gave_is_judged_by_all_questions(counting: LanguageModel) -> None:
    [finding] = option_order(counting, counted(24, 3, sorted_options=False), seed=0).findings
    assert finding.metric == "leakage.option_order.place" and "aside" not in finding.size


def test_a_benchmark_counts_as_found_where_its_own_finding_does(tiny: LanguageModel) -> None:
    result = measure_memorisation(tiny, made_up_benchmark(8), seed=0, orders=1)
    effect = result.effects["logprob"]
    small = replace(effect, placed=replace(present(effect.placed), value=0.001))
    # The test alone says so; the interval reaches no effect.
    wide = replace(small, mean=replace(effect.mean, value=0.4, low=-0.1, high=0.9))
    clear = replace(small, mean=replace(effect.mean, value=0.4, low=0.1, high=0.9))
    for one, found in ((wide, 0), (clear, 1)):
        told = overview_evidence([replace(result, effects=result.effects | {"logprob": one})], "tiny")
        assert told.metrics["leakage.benchmarks_found"].value == found
        assert [row["found"] for row in told.rows] == [found]
