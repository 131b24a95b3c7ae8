"""The audit in one call: a model and samples in, Evidence out, the same as a case records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lm_audit.audits.faithfulness import method_scores, read_samples
from lm_audit.audits.faithfulness.audit import Settings, method_evidence
from lm_audit.audits.faithfulness.study import prepare
from lm_audit.errors import UsageError
from lm_audit.models import LanguageModel, load_model


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    return load_model("tiny", device="cpu")


def test_a_model_and_samples_give_what_a_case_records(tmp_path: Path, tiny: LanguageModel) -> None:
    file = tmp_path / "own.jsonl"
    rows = [
        {"id": str(n), "prompt": f"The {n} bakers were late.", "generation": " They left.", "output_span": [0, 6]}
        for n in range(2)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    samples = read_samples(file)
    evidence = method_scores(tiny, samples, method="input_x_gradient", steps=4, seed=1)
    recorded = method_evidence([prepare(tiny, one) for one in samples], "input_x_gradient", Settings(steps=4, seed=1))
    assert len(evidence.rows) == 2
    assert {name: one.value for name, one in evidence.metrics.items()} == {
        name: one.value for name, one in recorded.metrics.items()
    }
    with pytest.raises(UsageError, match="samples is empty"):
        method_scores(tiny, [], method="input_x_gradient")
