"""The real model's log-probabilities against values from independent reference runs."""

from __future__ import annotations

import json

import pytest

from lm_audit.audits.bias import crows_pairs, minimal_probe
from lm_audit.models import LanguageModel, load_model
from tests.models.real_model import real_model
from tests.present import present
from tests.shared_data import golden_file


@pytest.fixture(scope="module")
def smollm2() -> LanguageModel:
    return real_model()


@pytest.mark.parametrize(
    ("key", "options"),
    [("seed", {}), ("spaced", {"leading_space": True})],
)
def test_minimal_probe_reproduces_the_published_logic(
    smollm2: LanguageModel, key: str, options: dict[str, bool]
) -> None:
    golden = json.loads(golden_file("bias/seed_exact.json").read_text())[key]
    result = minimal_probe(smollm2, **options)  # type: ignore[arg-type]
    assert list(result.ranking) == golden["ranking"]
    assert result.mean_bias == pytest.approx(golden["mean_bias"], abs=1e-3)
    for row, expected in zip(result.rows, golden["rows"], strict=True):
        for name, value in expected.items():
            assert row[name] == (pytest.approx(value, abs=1e-3) if isinstance(value, float) else value), name


def test_crows_pairs_matches_lm_evaluation_harness(smollm2: LanguageModel) -> None:
    golden = json.loads(golden_file("bias/crows_dev.json").read_text())
    evidence = crows_pairs(smollm2, golden["records"])
    for row, record in zip(evidence.rows, golden["records"], strict=True):
        assert row["total_more"] == pytest.approx(record["ref64_ll_more"], abs=1e-3)
        assert row["total_less"] == pytest.approx(record["ref64_ll_less"], abs=1e-3)
        assert row["total_more"] == pytest.approx(record["lmeval_ll_more"], abs=2e-3)
        assert row["suffix_more"] == pytest.approx(record["suffix_lp_more"], abs=1e-3)
        assert row["edit_less"] == pytest.approx(record["edit_lp_less"], abs=1e-3)
        assert row["shared_prefix_tokens"] == record["shared_prefix_tokens"]
        assert row["shared_suffix_tokens"] == record["shared_suffix_tokens"]
        assert row["stereotyped"] == record["lmeval_pct_stereotype"]
    aggregate, metrics = golden["aggregate"], evidence.metrics
    assert metrics["bias.crows_pct_stereotype"].value == pytest.approx(100 * aggregate["pct_stereotype"], abs=1e-3)
    assert metrics["bias.crows_likelihood_diff"].value == pytest.approx(aggregate["likelihood_diff"], abs=1e-3)
    assert metrics["bias.crows_signed_diff"].value == pytest.approx(aggregate["mean_signed_diff"], abs=1e-3)
    mean = metrics["bias.crows_pct_stereotype_mean_normalised"].value
    assert mean == pytest.approx(100 * aggregate["pct_mean_norm"], abs=1e-3)
    # The reference counts its two ties (no shared suffix) as 0; here a tie counts half.
    ties = evidence.parameters["ties"]["suffix"]
    suffix = metrics["bias.crows_pct_stereotype_suffix"].value
    assert ties == aggregate["suffix_ties"]
    assert suffix == pytest.approx(100 * (aggregate["pct_suffix_only"] + 0.5 * ties / aggregate["n"]), abs=1e-3)


@pytest.mark.parametrize("spec", ["tiny", pytest.param("smollm2", marks=pytest.mark.slow)])
def test_swapping_the_sentences_mirrors_the_result(spec: str) -> None:
    model = load_model(spec, device="cpu")
    records = json.loads(golden_file("bias/crows_dev.json").read_text())["records"][:12]
    swapped = [{**row, "sent_more": row["sent_less"], "sent_less": row["sent_more"]} for row in records]
    there, back = crows_pairs(model, records).metrics, crows_pairs(model, swapped).metrics
    assert there["bias.crows_pct_stereotype"].value == pytest.approx(
        100 - present(back["bias.crows_pct_stereotype"].value)
    )
    assert there["bias.crows_signed_diff"].value == pytest.approx(-present(back["bias.crows_signed_diff"].value))
    assert there["bias.crows_likelihood_diff"].value == pytest.approx(back["bias.crows_likelihood_diff"].value)
