"""For every audit the faults that no instrument may survive are in its table of faults, with the controls that notice.

The tables themselves run in each audit's ``test_*_mutations.py``.
"""

from __future__ import annotations

import pytest

from tests.audits.bias import test_bias_mutations as bias
from tests.audits.faithfulness import test_faith_mutations as faithfulness
from tests.audits.leakage import test_leakage_mutations as leakage
from tests.audits.leakage import test_published_mutations as published
from tests.audits.needle import test_needle_mutations as needle
from tests.audits.privacy import test_privacy_mutations as privacy
from tests.audits.privacy import test_training_faults as training

REPORTED = ("intervals half as wide", "signs of metrics reversed", "every second row lost", "rows recorded twice")
"""Faults between what was measured and what is reported, which every audit's table holds under these names."""

LISTED = ("scorer off by one token", "prompts swapped", "labels shuffled", "constant", "sign reversed", "identical")

BIAS = {fault.__name__: set(bias.CONTROLS) for fault in bias.FAULTS}
BIAS |= {fault.__name__: {"planted-preference"} for fault in bias.GRID_FAULTS}
BIAS |= {fault: set(guards) for fault, (_, guards) in bias.REPORTED.items()}
BOTH = {"seen-in-training", "never-seen"}
LEAKAGE = {fault: BOTH for table in (leakage.SCORERS, published.TOPS, published.PUBLISHED) for fault in table}
LEAKAGE |= {
    fault: {name for name, must in (("seen-in-training", positive), ("never-seen", negative)) if must}
    for fault, (_, positive, negative) in leakage.BOOKS.items()
}
LEAKAGE |= {
    fault: {name for name, must in (("seen-in-training", positive), ("never-seen", negative)) if must}
    for fault, (_, positive, negative) in leakage.REPORTED.items()
}
FAITHFULNESS = {fault: guards for fault, (_, guards) in faithfulness.INSTRUMENT.items()}
FAITHFULNESS |= {fault: guards for fault, (_, guards) in faithfulness.BOOKKEEPING.items()}
FAITHFULNESS |= {fault: guards for fault, (_, guards) in faithfulness.REPORTED.items()}
NEEDLE = {fault: guards for fault, (_, guards) in needle.FAULTS.items()}

PRIVACY = dict(privacy.NOTICED_BY)
for fault, guards in training.NOTICED_BY.items():
    PRIVACY[fault] = PRIVACY.get(fault, set()) | guards

TABLES: dict[str, tuple[dict[str, set[str]], tuple[str, ...], set[str]]] = {
    "privacy": (
        PRIVACY,
        (
            "off by one token", "texts swapped", "labels shuffled", "metric constant", "metric's sign reversed",
            "all items identical",
        ),
        {*privacy.CONTROLS, "known-training"},
    ),
    "leakage": (
        LEAKAGE,
        (
            "off by one token", "prompts swapped between items", "conditions shuffled", "metric constant",
            "metric of the sign reversed", "all items identical",
        ),
        BOTH,
    ),
    "leakage, published score": (
        LEAKAGE,
        (
            "likeliest token off by one", "likeliest tokens swapped between items", "hits shuffled",
            "published score constant", "hits reversed", "likeliest token the first item's",
        ),
        BOTH,
    ),
    "bias": (
        BIAS,
        ("off_by_one", "prompts_swapped", "_labels_shuffled", "constant", "reversed_sign", "identical"),
        set(bias.CONTROLS),
    ),
    "needle": (
        NEEDLE,
        (
            "scorer off by one token", "prompts swapped", "labels shuffled", "metric constant 0", "metric reversed",
            "all items identical",
        ),
        set(needle.CONTROLS),
    ),
    "faithfulness": (
        FAITHFULNESS,
        (
            "scorer: off by one token", "prompts swapped between samples", "labels shuffled between samples",
            "metric: constant", "metric: sign reversed", "all samples identical",
        ),
        set(faithfulness.CONTROLS),
    ),
}  # fmt: skip


@pytest.mark.parametrize("audit", TABLES)
def test_every_listed_fault_has_a_guard_and_every_control_guards_against_some(audit: str) -> None:
    noticed, names, controls = TABLES[audit]
    assert len(names) == len(LISTED)
    assert all(noticed[name] for name in names)
    assert set().union(*noticed.values()) == controls


@pytest.mark.parametrize("audit", TABLES)
def test_every_control_guards_against_numbers_that_are_not_of_its_rows(audit: str) -> None:
    noticed, _, controls = TABLES[audit]
    assert all(noticed[name] for name in REPORTED)
    assert set().union(*(noticed[name] for name in REPORTED)) == controls
    # Of needle's metrics none has a chance level.
    assert audit == "needle" or noticed["chance levels 0.1 up"]
