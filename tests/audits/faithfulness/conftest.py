"""The embedded real model and one explainer a golden case, shared by the tests of this folder."""

from __future__ import annotations

import pytest

from lm_audit.audits.faithfulness.methods.explain import Explainer
from lm_audit.models import LanguageModel
from tests.audits.faithfulness.golden.faithfulness_golden import Explainers, golden
from tests.models.real_model import real_model


@pytest.fixture(scope="session")
def smollm2() -> LanguageModel:
    return real_model()


@pytest.fixture(scope="session")
def explainers(smollm2: LanguageModel) -> Explainers:
    made: dict[str, Explainer] = {}

    def explainer(case: str) -> Explainer:
        if case not in made:
            content = golden(f"{case}.ifr")
            made[case] = Explainer(smollm2, content["prompt"], content["target"], chat=content["use_chat_template"])
        return made[case]

    return explainer
