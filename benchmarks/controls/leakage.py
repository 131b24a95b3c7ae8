"""The leakage audit's controls: p-values of the audit's own tests on drawn scores, judged by ``missed`` and ``alarms``.

24 questions on either side, as in ``planted.py``: log-probabilities a byte in four orders, ranks among eight, twelve
pairs of neighbours, hits of four options in the published order and a mixed one. The sizes of planted
effects are chosen.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from designs import Design

from lm_audit.audits.leakage import paired_sign_flip, published_place_test
from lm_audit.audits.leakage.controls.expected import NEIGHBOURS, alarms, missed
from lm_audit.audits.leakage.controls.published_hits import CHANCE, hits_by_chance
from lm_audit.audits.leakage.items.style import poisson_binomial
from lm_audit.stats import mann_whitney_p

QUESTIONS, PAIRS, ORDERS = 24, 12, 8


def tests(
    rng: np.random.Generator, effect: float, spread: float, known: float, pair: float, fault: str = ""
) -> dict[str, float]:
    """p-values of one half of the questions.

    ``effect`` and ``spread``: gain of the published order in nats a byte and its spread over orders; ``known``: the
    probability that an option's letters are known in their place; ``pair``: gain of a pair of neighbours, in spreads.
    """
    seed = int(rng.integers(2**31))
    level = rng.normal(-2, 1, (QUESTIONS, 1))
    scores = level + spread * rng.gumbel(size=(QUESTIONS, 4))
    ranked = level + spread * rng.gumbel(size=(QUESTIONS, ORDERS))
    scores[:, 0] += effect
    ranked[:, 0] += effect
    swaps = rng.standard_t(4, PAIRS) + pair
    hits = rng.random((2, QUESTIONS, 4)) < np.array([max(known, CHANCE), CHANCE])[:, None, None]
    if fault == "conditions shuffled":
        scores, ranked, hits = (rng.permuted(table, axis=axis) for table, axis in ((scores, 1), (ranked, 1), (hits, 0)))
    elif fault == "sign reversed":
        scores, ranked, swaps, hits = -scores, -ranked, -swaps, ~hits
    elif fault == "constant":
        scores[:], ranked[:], swaps[:], hits[:] = 1.0, 1.0, 0.0, True
    elif fault == "noise":
        scores, ranked, swaps = (
            rng.normal(size=(QUESTIONS, 4)),
            rng.normal(size=(QUESTIONS, ORDERS)),
            rng.normal(size=PAIRS),
        )
        hits = rng.random(hits.shape) < 0.5
    rows = [{"predicted": "x", "hit": hit} for hit in hits[0].ravel()]
    difference = (hits[0].sum(axis=1) - hits[1].sum(axis=1)).astype(float)
    firsts = int((ranked[:, :1] > ranked[:, 1:]).all(axis=1).sum())
    return {
        "order effect": published_place_test(scores.tolist(), seed=seed).value or 0.0,
        "rank of the published order": float(poisson_binomial([1 / ORDERS] * QUESTIONS)[firsts:].sum()),
        NEIGHBOURS: paired_sign_flip(swaps, seed=seed).value or 0.0,
        "published score": hits_by_chance(rows),
        "published score, orders": paired_sign_flip(difference, seed=seed).value or 0.0,
    }


def seen(rng: np.random.Generator, fault: str = "") -> bool:
    """Every test of planted questions, the two that only these are asked among them."""
    found = tests(rng, effect=1.5, spread=0.3, known=0.8, pair=20.0, fault=fault)
    if not fault:
        grown = rng.normal(1.0, 0.4, QUESTIONS)
        likelier = mann_whitney_p(rng.normal(-1, 0.4, QUESTIONS), rng.normal(-3, 0.4, QUESTIONS))
        found |= {
            "its growth by training": paired_sign_flip(grown, seed=0).value or 0.0,
            "completion": paired_sign_flip(rng.normal(0.5, 0.2, QUESTIONS), seed=0).value or 0.0,
            "likelihood against other questions": likelier.value or 0.0,
        }
    return not missed(found)


def unseen(rng: np.random.Generator, effect: float = 0.0, spread: float = 0.4, known: float = 0.0) -> bool:
    """Tests of questions that were not planted, and the order effect of the untouched model."""
    found = tests(rng, effect, spread, known, pair=0.0)
    untouched = rng.normal(-2, 1, (QUESTIONS, 1)) + 0.1 * rng.gumbel(size=(QUESTIONS, 4))
    untouched[:, 0] += effect
    found["order effect, untouched model"] = published_place_test(untouched.tolist(), seed=0).value or 0.0
    return not alarms(found)


DESIGNS = [
    Design("seen-in-training", "planted", True, seen),
    *(
        Design("seen-in-training", fault, False, partial(seen, fault=fault), 0.1)
        for fault in ("conditions shuffled", "sign reversed", "constant", "noise")
    ),
    Design("never-seen", "not planted", True, unseen, 2.0),
    Design("never-seen", "published order favoured by 0.25 nats a byte", False, partial(unseen, effect=0.25), 0.25),
    Design("never-seen", "published letters known to the prompt in 0.25", False, partial(unseen, known=0.25), 0.25),
]
