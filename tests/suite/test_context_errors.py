"""A text that is longer than its model reads: one error, one wording, wherever it is met."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from lm_audit.audits.faithfulness import attribute, deletion_curve
from lm_audit.audits.privacy.training.batches import require_context
from lm_audit.errors import ContextError
from lm_audit.models import LanguageModel, load_model


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    return load_model("tiny", device="cpu")


def test_a_text_longer_than_its_model_reads_is_one_error_with_one_wording(tiny: LanguageModel) -> None:
    """Scoring, generation, answers, attribution and training say alike what is too long, by how much, and the limit."""
    limit = tiny.context_window
    assert limit is not None
    ids = [40] * (limit + 1)
    text = tiny.tokenizer.decode(ids)

    def trained() -> None:
        require_context(tiny.module, [limit + 1], "this training text", "--sft")

    asked: dict[str, Callable[[], object]] = {
        "scoring": lambda: tiny.loglikelihood([(ids, [41])]),
        "generation": lambda: tiny.generate([ids], max_new_tokens=1),
        "answers": lambda: tiny.complete([ids], [[41]], max_new_tokens=1),
        "attribution": lambda: attribute(tiny, text, "b", "ifr"),
        "deletion": lambda: deletion_curve(tiny, text, "b", [1.0]),
        "training": trained,
    }
    wording = rf" needs \d+ tokens, and \w+ reads at most {limit} \(its context window\): .*\w"
    for name, ask in asked.items():
        with pytest.raises(ContextError) as caught:
            ask()
        assert re.search(wording, str(caught.value)), name
