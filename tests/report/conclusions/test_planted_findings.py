"""A planted effect is said on the first screen, in the terminal and in summary.json; a clean model is not accused.

The audits measure a model that was made to miss or to copy, and its clean twin, and the whole report is written. Of the
other audits the models that their own tests have trained are told of there: ``test_leakage_controls.py``,
``test_privacy_mutations.py``, ``tests/findings/test_audit_conclusions.py``.
"""

from __future__ import annotations

from pathlib import Path

from tests.report.browser.first_screen import clean, told


def test_a_model_that_reads_the_middle_alone_is_found(tmp_path: Path) -> None:
    from lm_audit.audits.needle.answers.evaluation import answered, grid_evidence
    from lm_audit.audits.needle.controls.planted import planted_model
    from lm_audit.audits.needle.controls.stubs import MiddleReader, stub_samples

    samples = stub_samples(0, samples=5, lengths=(448,))
    middle, whole = (grid_evidence(answered(planted_model(seen), samples)) for seen in (MiddleReader().seen, 1.0))
    planted = told(tmp_path / "planted", middle)
    assert planted.heading == "1 effect found in mine."
    assert planted.says("The model finds fewer than 85 of 100 needles in prompts of 448 tokens")
    clean(told(tmp_path / "clean", whole))


def test_an_explanation_of_a_model_that_copies_is_found_to_be_one(tmp_path: Path) -> None:
    from lm_audit.audits.faithfulness.audit import Settings, method_evidence
    from lm_audit.audits.faithfulness.controls.copier import copier, copy_samples
    from lm_audit.audits.faithfulness.controls.known_sources import randomised
    from lm_audit.audits.faithfulness.study import prepare

    model, samples = copier(0, "cpu"), copy_samples(10, 0)
    explained, nothing = (
        method_evidence([prepare(one, sample) for sample in samples], "leave_one_out", Settings(steps=5))
        for one in (model, randomised(model, 99, 0))
    )
    assert told(tmp_path / "planted", explained).says(
        "leave_one_out explains better than random deletion and even weights on copy samples"
    )
    clean(told(tmp_path / "clean", nothing))
