"""Every covered architecture against the model's own attention, autograd and a plain reading of the formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from lm_audit.audits.faithfulness.methods.attention_maps import attention_rollout, cumulative_attention, mean_attention
from lm_audit.audits.faithfulness.methods.backward import ATTN_LRP, GRADIENT
from lm_audit.audits.faithfulness.methods.ifr.heads import Heads
from lm_audit.audits.faithfulness.methods.ifr.routes import flow_matrix, flow_span
from lm_audit.audits.faithfulness.methods.relevance import gradient_rows, gradient_span, integrated_gradients
from lm_audit.audits.faithfulness.methods.trace import trace_passage
from lm_audit.errors import ModelError
from lm_audit.models.causal_module import DecoderModule
from tests.audits.faithfulness.small_decoders import COVERED, IDS, small_decoder
from tests.models.pretrained import pretrained

ROWS = list(range(9, len(IDS)))


def _stored_attention(module: DecoderModule) -> torch.Tensor:
    """Attention as the model computes it, L x H x T x T."""
    model = pretrained(module)
    model.set_attn_implementation("eager")
    found = model(input_ids=torch.tensor([IDS]), output_attentions=True).attentions
    model.set_attn_implementation("sdpa")
    return torch.stack([layer[0] for layer in found])


def _plain_matrix(model: DecoderModule, attention: torch.Tensor) -> torch.Tensor:
    """IFR from stored attention, by the definition: one vector a source, head and sink."""
    states: dict[tuple[str, int], torch.Tensor] = {}

    def keep(name: tuple[str, int]) -> Callable[[nn.Module, tuple[torch.Tensor, ...]], None]:
        def hook(module: nn.Module, arguments: tuple[torch.Tensor, ...]) -> None:
            states[name] = arguments[0][0].detach()

        return hook

    handles = []
    for index, layer in enumerate(model.model.layers):
        handles.append(layer.input_layernorm.register_forward_pre_hook(keep(("x", index))))
        handles.append(layer.post_attention_layernorm.register_forward_pre_hook(keep(("y", index))))
    model(input_ids=torch.tensor([IDS]))
    for handle in handles:
        handle.remove()
    total = torch.zeros(len(ROWS), len(IDS))
    for index, layer in enumerate(model.model.layers):
        x, y, probabilities = states["x", index], states["y", index], attention[index]
        heads, width = probabilities.shape[0], layer.self_attn.head_dim
        values = layer.input_layernorm(x) @ layer.self_attn.v_proj.weight.T
        values = values.view(len(IDS), -1, width).repeat_interleave(heads // (values.shape[1] // width), dim=1)
        output = layer.self_attn.o_proj.weight.view(-1, heads, width)
        messages = torch.einsum("jhe,dhe->jhd", values, output)
        for place, row in enumerate(ROWS):
            parts = probabilities[:, row, :].T[..., None] * messages
            near = (y[row].abs().sum() - (parts - y[row]).abs().sum(-1)).clamp_min(0).sum(1)
            kept = (y[row].abs().sum() - (x[row] - y[row]).abs().sum()).clamp_min(0)
            total[place] += near / (near.sum() + kept + 1e-12)
    return total


@pytest.mark.parametrize("kind", COVERED)
def test_ifr_equals_the_definition_on_stored_attention(kind: str) -> None:
    model = small_decoder(kind)
    found = flow_matrix(trace_passage(model, IDS), ROWS)
    np.testing.assert_allclose(found.tokens, _plain_matrix(model, _stored_attention(model)), atol=2e-5)


@pytest.mark.parametrize("kind", COVERED)
def test_span_of_one_token_is_its_row(kind: str) -> None:
    trace = trace_passage(small_decoder(kind), IDS)
    rows = flow_matrix(trace, ROWS).tokens
    for place, row in enumerate(ROWS):
        np.testing.assert_allclose(flow_span(trace, [row]).tokens, rows[place], atol=2e-5)


@pytest.mark.parametrize("kind", COVERED)
def test_attention_methods_equal_stored_attention(kind: str) -> None:
    model = small_decoder(kind)
    attention, trace = _stored_attention(model), trace_passage(model, IDS)
    np.testing.assert_allclose(mean_attention(trace, ROWS), attention.mean((0, 1))[ROWS], atol=1e-5)
    last = attention[-1].mean(0)
    cumulative = torch.stack([last[: row + 1].mean(0) for row in ROWS])
    np.testing.assert_allclose(cumulative_attention(trace, ROWS), cumulative, atol=1e-5)
    flow = torch.eye(len(IDS))
    for layer in attention:
        mixing = layer.mean(0) + torch.eye(len(IDS))
        flow = (mixing / mixing.sum(-1, keepdim=True)) @ flow
    np.testing.assert_allclose(attention_rollout(trace, ROWS), flow[ROWS], atol=1e-5)


@pytest.mark.parametrize("kind", COVERED)
@pytest.mark.parametrize("objective", ["logit", "logprob"])
def test_input_x_gradient_equals_autograd(kind: str, objective: str) -> None:
    model = small_decoder(kind)
    embeddings = model.get_input_embeddings()(torch.tensor([IDS])).detach().requires_grad_()
    logits = model(inputs_embeds=embeddings).logits[0]
    if objective == "logprob":
        logits = logits.log_softmax(-1)
    rows = []
    for row in ROWS:
        (gradient,) = torch.autograd.grad(logits[row - 1, IDS[row]], embeddings, retain_graph=True)
        rows.append((gradient * embeddings).sum(-1)[0].detach())
    expected = torch.stack(rows)
    found = gradient_rows(trace_passage(model, IDS), ROWS, kind=objective, lrp=False)
    np.testing.assert_allclose(found, expected, atol=1e-4 * float(expected.abs().max()))


def _lrp_by_detaching(model: DecoderModule, row: int) -> torch.Tensor:
    """AttnLRP of the logit of one token through autograd: scales detached, factors by detached complements."""

    def part(tensor: torch.Tensor, share: float) -> torch.Tensor:
        return share * tensor + ((1 - share) * tensor).detach()

    def norm(module: Any, x: torch.Tensor) -> torch.Tensor:
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + module.variance_epsilon).detach()
        return torch.mul(module.weight, x * scale)

    def turn(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, -1)
        return x * cosine + torch.cat([-second, first], -1) * sine

    embeddings = model.get_input_embeddings()(torch.tensor(IDS)).detach().requires_grad_()
    cosine, sine = model.model.rotary_emb(embeddings[None], torch.arange(len(IDS))[None])
    x = embeddings
    for layer in model.model.layers:
        attention, normed = layer.self_attn, norm(layer.input_layernorm, x)
        q, k, v = (
            projection(normed).view(len(IDS), -1, attention.head_dim).transpose(0, 1)
            for projection in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        if hasattr(attention, "q_norm"):
            q, k = norm(attention.q_norm, q), norm(attention.k_norm, k)
        q, k = part(turn(q, cosine[0], sine[0]), 0.25), part(turn(k, cosine[0], sine[0]), 0.25)
        groups = q.shape[0] // k.shape[0]
        k, v = (t.repeat_interleave(groups, 0) for t in (k, part(v, 0.5)))
        scores = (q @ k.transpose(1, 2)) * attention.scaling
        scores = scores.masked_fill(torch.ones(len(IDS), len(IDS)).triu(1).bool(), -torch.inf)
        x = x + attention.o_proj((scores.softmax(-1) @ v).transpose(0, 1).flatten(1))
        inner = norm(layer.post_attention_layernorm, x)
        gate = layer.mlp.gate_proj(inner)
        slope = (torch.nn.functional.silu(gate) / (gate + 1e-10)).detach()
        x = x + layer.mlp.down_proj(part((gate * slope) * layer.mlp.up_proj(inner), 0.5))
    logit = model.lm_head(norm(model.model.norm, x))[row - 1, IDS[row]]
    (gradient,) = torch.autograd.grad(logit, embeddings)
    return torch.mul(gradient, embeddings).sum(-1).detach()


@pytest.mark.parametrize("kind", ["llama", "llama_biases", "qwen2", "qwen3"])
def test_attnlrp_equals_the_detached_forward_pass(kind: str) -> None:
    model = small_decoder(kind)
    found = gradient_rows(trace_passage(model, IDS), ROWS, kind="logit", lrp=True)
    expected = torch.stack([_lrp_by_detaching(model, row) for row in ROWS])
    np.testing.assert_allclose(found, expected, atol=1e-4 * float(expected.abs().max()))


@pytest.mark.parametrize("lrp", [True, False])
def test_a_span_is_exactly_the_weighted_sum_of_its_rows(lrp: bool) -> None:
    trace = trace_passage(small_decoder("qwen3"), IDS)
    weights = torch.linspace(0.2, 1.3, len(ROWS))
    rows = gradient_rows(trace, ROWS, kind="logit", lrp=lrp)
    span = gradient_span(trace, ROWS, weights, kind="logit", lrp=lrp)
    np.testing.assert_allclose(span, weights @ rows, atol=1e-4 * float(rows.abs().max()))


def test_integrated_gradients_converge_to_completeness() -> None:
    trace = trace_passage(small_decoder("llama"), IDS)
    coarse = integrated_gradients(trace, ROWS[:2], 2, points=5)
    fine = integrated_gradients(trace, ROWS[:2], 2, points=5, tolerance=0.02, max_points=700)
    assert float(fine.gap.max()) <= 0.02 < float(coarse.gap.max())
    assert fine.points > coarse.points


def test_one_point_cannot_be_refined() -> None:
    trace = trace_passage(small_decoder("llama"), IDS)
    assert integrated_gradients(trace, ROWS[:1], 2, points=1, tolerance=0.0).points == 1


def test_refining_the_grid_equals_starting_with_it() -> None:
    trace = trace_passage(small_decoder("llama"), IDS)
    refined = integrated_gradients(trace, ROWS[:2], 2, points=5, tolerance=0.0, max_points=9)
    direct = integrated_gradients(trace, ROWS[:2], 2, points=9)
    assert refined.points == direct.points == 9
    np.testing.assert_allclose(refined.rows, direct.rows, atol=1e-4 * float(direct.rows.abs().max()))


@pytest.mark.parametrize("kind", ["gpt2", "gemma2", "olmo2", "granite", "granite_logits", "granite_embeddings"])
def test_other_builds_are_named_errors(kind: str) -> None:
    with pytest.raises(ModelError, match=r"model\.|norm|cap|activation|rebuilt|logits|embeddings"):
        flow_matrix(trace_passage(small_decoder(kind), IDS), ROWS)


@pytest.mark.parametrize("part", ["q_norm", "window", "v_bias", "scaling"])
def test_a_part_that_is_not_handled_is_an_error_not_a_number(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the reference gets silently wrong: each left out on purpose makes the reconstruction fail."""
    kind = {"q_norm": "qwen3", "window": "mistral_window", "v_bias": "qwen2", "scaling": "llama"}[part]
    trace = trace_passage(small_decoder(kind), IDS)
    if part == "q_norm":
        monkeypatch.setattr("lm_audit.audits.faithfulness.methods.ifr.heads.rms_norm", _only_wide(trace.decoder.width))
    elif part == "window":
        for layer in trace.decoder.layers:
            object.__setattr__(layer, "window", None)
    elif part == "v_bias":
        monkeypatch.setattr("lm_audit.audits.faithfulness.methods.trace.layer_heads", _without_value_bias)
    else:
        object.__setattr__(trace.decoder, "scaling", trace.decoder.scaling * 1.05)
    with pytest.raises(ModelError, match="attention output rebuilt from its parts is off"):
        flow_matrix(trace, ROWS)


def _only_wide(width: int) -> Callable[..., torch.Tensor]:
    from lm_audit.audits.faithfulness.methods.ifr.heads import rms_norm

    def wide(norm: Any, x: torch.Tensor, epsilon: float | None = None) -> torch.Tensor:
        return rms_norm(norm, x, epsilon) if x.shape[-1] == width else x

    return wide


def _without_value_bias(*arguments: Any) -> Heads:
    from dataclasses import replace

    from lm_audit.audits.faithfulness.methods.ifr.heads import layer_heads

    heads = layer_heads(*arguments)
    return replace(heads, values=heads.messages)


def test_nothing_is_left_on_the_model() -> None:
    model = small_decoder("qwen3").requires_grad_(True)
    gradient_rows(trace_passage(model, IDS), ROWS, kind="logit", lrp=True)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert GRADIENT != ATTN_LRP


def test_nan_weights_are_an_error() -> None:
    model = small_decoder("llama")
    model.model.norm.weight[3] = float("nan")
    with pytest.raises(ModelError, match="NaN"):
        trace_passage(model, IDS)


def test_the_residual_stream_is_kept_once_and_no_attention_is() -> None:
    """Memory of a trace: (L + 1) T d values in the model's precision and a few probe rows."""
    model = small_decoder("llama").to(torch.bfloat16)
    trace = trace_passage(model, IDS)
    assert [state.dtype for state in trace.states] == [torch.bfloat16] * 4
    assert sum(state.numel() for state in trace.states) == 4 * len(IDS) * 32
    assert all(row.shape == (len(trace.probes), 32) for row in trace.attended)
