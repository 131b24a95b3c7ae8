"""What the audit reports of half of the questions and no test of the controls asks for, by other formulas from rows.

The memorisation test's means and shares, the order of the rows, and how many benchmarks are found.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.leakage.half_option.variants import BASELINES, ORIGINAL, OTHER_ITEM, SHUFFLED
from lm_audit.audits.leakage.items.item import full_text
from lm_audit.audits.leakage.measured_memory import Memorisation
from lm_audit.audits.leakage.memory import COLUMNS, measured_effects
from lm_audit.audits.leakage.orders.evidence import row_order
from lm_audit.audits.leakage.overview import overview_evidence
from lm_audit.audits.second_opinion import misreported

if TYPE_CHECKING:
    from lm_audit.audits.leakage.items.benchmark import Benchmark
    from lm_audit.audits.leakage.items.item import Item
    from lm_audit.evidence import Evidence
    from lm_audit.models import LanguageModel

Rows = Sequence[Mapping[str, Any]]

SHARDS, PERMUTATIONS = 8, 3
"""As many shards as give an interval; so few shuffles that a control can afford them."""

POWER, LEVEL = 0.8, 0.05
"""Of the smallest effect that would be found."""

FOUND_AT = 0.05
"""Adjusted p-value of a benchmark that is found."""


def wrong_memory(
    result: Memorisation, rows: Rows, *, orders: int, chances: Mapping[str, float] | None = None
) -> list[str]:
    """What the memorisation test reports of these rows and is not so; ``chances``: further levels that are known."""
    evidence = measured_effects(result)
    evidence.rows = [dict(row) for row in rows]
    means = {measure: _by_question(rows, column) for measure, column in COLUMNS.items()}
    levels: dict[str, float] = {"leakage.mitigation_share": 0.0, **(chances or {})}
    values: dict[str, float] = {}
    for measure, by in means.items():
        language = _mean(by[OTHER_ITEM])
        levels |= {f"leakage.{measure}.{condition}": language for condition in (ORIGINAL, SHUFFLED, *BASELINES)}
        differences = _differences(by)
        apart = list(differences.values())
        for name, kept in (("order_effect", set(differences)), ("order_effect_unsorted", _unsorted(rows))):
            some = [value for question, value in differences.items() if question in kept]
            if len(set(some)) > 1:
                smallest = least_effect(len(some)) * float(np.std(some, ddof=1))
                values[f"leakage.{name}.{measure}.detectable"] = smallest
        if measure == "hits":
            above = _mean(by[ORIGINAL]) - language
            known = evidence.metrics["leakage.mitigation_share"].value
            if above > 0:
                values["leakage.mitigation_share"] = math.fsum(apart) / len(apart) / above
            elif known is not None:
                return [f"leakage.mitigation_share is {known:.4g} of a score that is not above chance"]
    options = sum(len(item.options) for item in result.scores.items)
    asked = (ORIGINAL, *(f"{SHUFFLED}-{number}" for number in range(1, orders + 1)), *BASELINES)
    counts = [({"condition": name}, options) for name in asked]
    return misreported(evidence, chances=levels, values=values, counts=counts)


def wrong_halves(rows: Rows, items: Sequence[Item]) -> list[str]:
    """Options that were not cut in their middle, to one character (a token of the toy), and what is said of the next
    token that its rank among all does not say."""
    options = {option for item in items for option in item.options}
    faults: dict[str, int] = defaultdict(int)
    for row in rows:
        suffix, whole = str(row["suffix"]), f"{row['prefix']}{row['suffix']}"
        option = max((one for one in options if whole.endswith(one)), key=len, default="")
        faults["are not cut in the middle of an option"] += abs(len(suffix) - len(option) / 2) > 1
        faults["have other bytes than they are said to"] += row["suffix_bytes"] != len(suffix.encode())
        foreseen = bool(row["predicted"]) and suffix.startswith(str(row["predicted"]))
        likeliest = foreseen if row["near_tie"] else row["rank"] == 0
        faults["say of their next token what its rank does not"] += foreseen != likeliest
        faults["are hits without their next token, or none with it"] += row["hit"] != (
            foreseen and not str(row["predicted"]).isspace()
        )
    return [f"{count} of {len(rows)} rows {what}" for what, count in faults.items() if count]


def _by_question(rows: Rows, column: str) -> dict[str, dict[str, float]]:
    """Of each condition the mean over a question's options."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row[column] is not None:
            found[str(row["condition"])][str(row["question"])].append(float(row[column]))
    each = {name: {q: math.fsum(v) / len(v) for q, v in some.items()} for name, some in found.items()}
    return defaultdict(dict, each)


def _differences(by: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Of each question its published order minus the mean of its others."""
    return {
        question: value - math.fsum(mixed) / len(mixed)
        for question, value in by[ORIGINAL].items()
        if (mixed := [by[name][question] for name in by if name.startswith(SHUFFLED) and question in by[name]])
    }


def _unsorted(rows: Rows) -> set[str]:
    """Questions whose published order follows no style."""
    return {str(row["question"]) for row in rows if row["sorted"] is False}


def differences_of(rows: Rows, measure: str, *, unsorted: bool = False) -> dict[str, float]:
    """Of each question (whose order follows no style) its published order minus the mean of its others."""
    found = _differences(_by_question(rows, COLUMNS[measure]))
    return {question: value for question, value in found.items() if not unsorted or question in _unsorted(rows)}


def _mean(by: Mapping[str, float]) -> float:
    return math.fsum(by.values()) / len(by) if by else math.nan


def least_effect(n: int) -> float:
    """The mean of n differences, in their standard deviations, that a two-sided t test finds with the power asked."""
    from scipy.optimize import brentq
    from scipy.stats import nct, t

    limit = t.isf(LEVEL / 2, n - 1)

    def lacking(size: float) -> float:
        away = size * math.sqrt(n)
        return float(nct.sf(limit, n - 1, away) + nct.cdf(-limit, n - 1, away)) - POWER

    # From far out the distribution has no value, so that the other end is gone up to.
    enough = 0.1
    while lacking(enough) < 0:
        enough *= 1.5
    return float(brentq(lacking, enough / 2, enough, xtol=1e-12))


def reported_order(model: LanguageModel, benchmark: Benchmark, *, seed: int) -> Evidence:
    """The audit's own test of the rows' order, on these questions."""
    return row_order(model, benchmark, shards=SHARDS, permutations=PERMUTATIONS, seed=seed)


def wrong_order(evidence: Evidence, model: LanguageModel, benchmark: Benchmark, within: float) -> list[str]:
    """What is reported of the rows' order and is not so; ``within``: nats a row in which plain passes agree."""
    from scipy.stats import chi2, t

    shards = [row for row in evidence.rows if row["kind"] == "shard"]
    gains = np.array([row["gain"] for row in shards], dtype=np.float64)
    ranks = [float(row["rank_p"]) for row in shards]
    values = {}
    if len(gains) > 1 and np.ptp(gains) > 0:
        values["leakage.row_order.p_fisher"] = float(chi2.sf(-2 * math.fsum(map(math.log, ranks)), 2 * len(ranks)))
        error = math.sqrt(float(gains.var(ddof=1)) / len(gains))
        values["leakage.row_order.p_t"] = float(t.sf(float(gains.mean()) / error, len(gains) - 1))
    chances = {"leakage.row_order.gain": 0.0, "leakage.row_order.swap_gain": 0.0}
    counts = [({"kind": "pair"}, len(benchmark.items) // 2), ({"kind": "shard"}, SHARDS)]
    faults = misreported(evidence, chances=chances, values=values, counts=counts)
    places = {1 / (1 + PERMUTATIONS) * place for place in range(1, PERMUTATIONS + 2)}
    if not all(any(abs(rank - place) < 1e-9 for place in places) for rank in ranks):
        faults.append(f"a shard has another p-value than ranks among {PERMUTATIONS} shuffles have")
    apart = [_apart(model, benchmark, row, number) for number, row in enumerate(shards[:2])]
    if not max(apart, default=0.0) <= within * len(benchmark.items) / SHARDS:
        faults.append(f"a shard in order is {max(apart):.2g} nats from what a plain forward pass gives it")
    return faults


def _apart(model: LanguageModel, benchmark: Benchmark, row: Mapping[str, Any], number: int) -> float:
    """How far the log-probability (nats) of a shard in its order is from that of a plain pass over its rows."""
    import torch

    from lm_audit.models.scoring.requests import default_bos

    size = len(benchmark.items) // SHARDS
    text = "".join(f"{full_text(item)}\n\n" for item in benchmark.items[number * size : (number + 1) * size])
    body = model.tokenizer(text, add_special_tokens=False)["input_ids"]
    head = default_bos(model.tokenizer)
    ids = torch.tensor([[*head, *body]], device=model.module.device)
    with torch.no_grad():
        logprobs = model.module(ids).logits[0, :-1].double().log_softmax(dim=-1)
    total = float(logprobs.gather(1, ids[0, 1:, None]).sum())
    return abs(total - float(row["canonical"]))


def wrong_overview(seen: Memorisation, unseen: Memorisation) -> list[str]:
    """What the table of all benchmarks says of these two and is not so."""
    evidence = overview_evidence([seen, unseen], "control")
    faults = misreported(evidence, counts=[({}, 2)])
    raw = [None if (p := one.telling_effects["logprob"].placed) is None else p.value for one in (seen, unseen)]
    if len(evidence.rows) != 2 or None in raw:
        return [*faults, f"{len(evidence.rows)} benchmarks are compared, 2 were asked for"]
    known = [float(p) for p in raw if p is not None]
    twice = min(1.0, 2 * min(known))
    for row, own, result in zip(evidence.rows, known, (seen, unseen), strict=True):
        adjusted = twice if own == min(known) else max(twice, own)
        if row["holm"] is None or not abs(row["holm"] - adjusted) <= 1e-9:
            faults.append(f"the adjusted p-value of {row['item']} is {row['holm']}, by another formula {adjusted:.4g}")
        low = result.telling_effects["logprob"].judged.low
        if row["found"] and not (adjusted <= FOUND_AT and low is not None and low > 0):
            faults.append(f"{row['item']} is found with p {adjusted:.2g} and a lower limit of {low}")
    if not evidence.rows[0]["found"]:
        faults.append("the planted questions are not among the benchmarks that are found")
    return faults
