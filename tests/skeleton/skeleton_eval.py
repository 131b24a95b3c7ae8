"""The cases of the skeleton audit."""

import pytest

from lm_audit.plugin import Case, cases

SENTENCES = [f"The {colour} cat saw the {thing}." for colour in ("red", "old") for thing in ("bird", "river", "house")]


@cases([Case("plain")])
def test_repetition(case, language_model, evidence):
    from tests.skeleton.skeleton_audit import repetition

    evidence.record(repetition(language_model, SENTENCES))


@pytest.mark.control
@cases([Case("repeating-model", {"epochs": 60}, control="positive", model="tiny")])
def test_control(case, language_model, evidence, audit_seed):
    """A model that was trained to repeat must be caught."""
    from lm_audit.models.tiny import train_tiny
    from tests.skeleton.skeleton_audit import last_word, repetition

    repeated = [f"{sentence} {last_word(sentence)}" for sentence in SENTENCES]
    model = train_tiny(language_model, repeated, seed=audit_seed, epochs=case.params["epochs"], lr=3e-3)
    result = repetition(model, SENTENCES)
    rate = result.metrics["skeleton.repetition_rate"]
    evidence.record(result)
    evidence.control("positive", passed=rate.low > 0.5, expected="a lower bound above 0.5", observed=f"{rate.low:.2f}")
