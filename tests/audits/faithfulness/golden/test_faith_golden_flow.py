"""IFR, FT-IFR and FlashTrace against the reference package."""

from __future__ import annotations

import numpy as np
import pytest

from tests.audits.faithfulness.golden.faithfulness_golden import (
    CASES,
    Explainers,
    assert_close,
    golden,
    user_and_generation,
)
from tests.present import present

ATOL = 1e-4


@pytest.mark.parametrize("case", CASES)
def test_tokenisation_is_the_reference_s(case: str, explainers: Explainers) -> None:
    content, passage = golden(f"{case}.ifr"), explainers(case).passage
    assert list(passage.prompt_ids) == content["prompt_ids"]
    assert list(passage.generation_ids) == content["generation_ids"]
    assert list(passage.user) == content["user_prompt_indices"]
    assert list(passage.tokens) == content["user_prompt_tokens"] + content["generation_tokens"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("eps", "name"), [(1e-6, "ifr_matrix_full"), (None, "ifr_matrix_full_config_eps")])
def test_matrix(case: str, eps: float | None, name: str, explainers: Explainers) -> None:
    content = golden(f"{case}.ifr")
    found = explainers(case).attribute("ifr", eps=eps)
    assert_close(found.matrix, user_and_generation(content[name], content), ATOL)


@pytest.mark.parametrize("case", CASES)
def test_matrix_by_products(case: str, explainers: Explainers) -> None:
    content = golden(f"{case}.ifr")
    details = explainers(case).attribute("ifr", eps=1e-6).details
    np.testing.assert_allclose(details["residual_shares"], content["ifr_resid_fraction_total"], atol=1e-3)
    np.testing.assert_allclose(details["head_totals"][0], content["ifr_head_total_row0"], atol=ATOL)


@pytest.mark.parametrize("case", CASES)
def test_span(case: str, explainers: Explainers) -> None:
    content = golden(f"{case}.ifr")
    found = explainers(case).attribute("ifr_span", sink=content["sink_span"], eps=1e-6)
    assert_close(found.vector, user_and_generation(content["ifr_span_sink_full"], content), ATOL)
    first, last = content["sink_span"]
    assert np.array_equal(found.matrix[first], present(found.vector))
    assert np.array_equal(found.matrix[last], present(found.vector))
    assert np.isnan(found.matrix).all(axis=1).sum() == content["G"] - (last - first + 1)
    np.testing.assert_allclose(found.details["head_totals"], content["ifr_span_head_total"], atol=ATOL)
    np.testing.assert_allclose(found.details["ffn_shares"], content["ifr_span_ffn_per_layer"], atol=ATOL)
    np.testing.assert_allclose(found.details["ffn_residual_shares"], content["ifr_span_resid_ffn_per_layer"], atol=ATOL)


@pytest.mark.parametrize("case", CASES)
def test_weighted_span(case: str, explainers: Explainers) -> None:
    content = golden(f"{case}.ifr")
    weighted = content["ifr_span_weighted"]
    found = explainers(case).attribute("ifr_span", sink=content["sink_span"], weights=weighted["weights"], eps=1e-6)
    assert_close(found.vector, user_and_generation(weighted["token_total_full"], content), ATOL)


@pytest.mark.parametrize("case", CASES)
def test_ft_ifr(case: str, explainers: Explainers) -> None:
    content = golden(f"{case}.ifr")
    expected = content["ft_ifr_multi_hop"]
    found = explainers(case).attribute(
        "ft_ifr", sink=expected["sink_span"], thinking=expected["thinking_span"], hops=expected["n_hops"], eps=1e-6
    )
    assert_close(found.per_hop, user_and_generation(expected["hop_token_total_full"], content), ATOL)
    assert_close(found.vector, user_and_generation(expected["observation"]["sum"], content), ATOL)
    assert_close(
        present(found.hops).observed[1:], user_and_generation(expected["observation"]["per_hop"], content), ATOL
    )
    assert_close(present(found.hops).mask, user_and_generation(expected["observation"]["mask"], content), 0.0)
    np.testing.assert_allclose(found.details["ratios"], expected["ratios"], atol=ATOL)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("name", "method", "variant"),
    [
        ("ft_both", "flashtrace", None),
        ("ft_in_all_gen", "ft_ifr", "in_all_gen"),
        ("ft_stop_words", "ft_ifr", "stop_words"),
        ("ft_split_hop", "ft_ifr", "split_hop"),
    ],
)
def test_multi_hop_variants(case: str, name: str, method: str, variant: str | None, explainers: Explainers) -> None:
    expected = golden(f"{case}.ifr")[name]
    found = explainers(case).attribute(
        method,
        sink=expected["sink_span"],
        thinking=expected["thinking_span"],
        hops=expected["n_hops"],
        variant=variant,
        eps=1e-6,
    )
    assert_close(found.per_hop, expected["per_hop_trim"], ATOL)
    assert_close(found.vector, expected["obs_sum_trim"], ATOL)
    assert_close(present(found.hops).observed[1:], expected["obs_per_hop_trim"], ATOL)
    assert_close(present(found.hops).mask, expected["obs_mask_trim"], 0.0)
    np.testing.assert_allclose(found.details["ratios"], expected["ratios"], atol=ATOL)
    assert [list(segment) for segment in found.details["segments"]] == expected.get("segments_generation", [])


def test_without_a_thinking_span_flashtrace_recurses_over_the_sink(explainers: Explainers) -> None:
    expected = golden("fact_raw.ifr")["ft_both"]
    found = explainers("fact_raw").attribute("flashtrace", sink=expected["sink_span"], hops=2, eps=1e-6)
    assert_close(found.vector, expected["obs_sum_trim"], ATOL)
