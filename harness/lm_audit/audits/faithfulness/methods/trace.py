"""Trace: one forward pass of a passage, from which every attribution that needs one is computed layer by layer.

Only the residual stream is kept, once, in the model's own precision ((L + 1) x T x d). Attention is recomputed from it,
one layer at a time; where a layer is opened, its recomputed attention output and the residual stream after it are
compared with the model's own at probe rows, so that an architecture that is not handled is an error, never a wrong
number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from lm_audit.audits.faithfulness.methods.decoder import Decoder, describe_decoder
from lm_audit.audits.faithfulness.methods.ifr.heads import Heads, layer_heads, rms_norm
from lm_audit.errors import ModelError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.kernels.fused_parts import FusedParts

PROBES = 16
"""Rows at which every layer's attention output is compared with the model's."""

TOLERANCE = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 6e-2}
"""Largest error of a recomputed attention output, as a share of the largest value, by the dtype of the weights."""


@dataclass
class Trace:
    """The residual stream of one passage and the way back into its layers.

    ``states[l]`` is the input of layer ``l`` (T x d), ``states[L]`` the input of the final norm; ``probes`` are the
    checked rows and ``attended[l]`` the model's attention output there.
    """

    decoder: Decoder
    ids: list[int]
    states: list[Tensor]
    probes: Tensor
    attended: list[Tensor]
    rotary: tuple[Tensor, Tensor]
    checked: set[int] = field(default_factory=set)
    row_sums: dict[int, dict[tuple[int, int], Tensor]] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """T."""
        return len(self.ids)

    def open(self, index: int, eps: float | None = None) -> Heads:
        """Heads of a layer, checked against the model on first use; ``ModelError`` where they do not agree."""
        heads = layer_heads(self.decoder, index, self.states[index], self.rotary, eps)
        heads = replace(heads, row_sums=self.row_sums.setdefault(index, {}))
        if index not in self.checked:
            self._check(index, heads)
            self.checked.add(index)
        return heads

    def verify(self) -> None:
        """Check every layer that was not opened yet: for methods that recompute layers by themselves."""
        for index in range(len(self.decoder.layers)):
            if index not in self.checked:
                self.open(index)

    def logits(self, positions: Tensor) -> Tensor:
        """Logits that the given positions predict (R x V), in float32."""
        normed = rms_norm(self.decoder.base.norm, self.states[-1][positions])
        logits: Tensor = self.decoder.module.lm_head(normed).float()
        return logits

    def _check(self, index: int, heads: Heads) -> None:
        limit = TOLERANCE.get(self.decoder.dtype, 1e-4)
        rebuilt = heads.mix(heads.probabilities(self.probes)) + heads.output_bias
        middle = self.states[index][self.probes] + self.attended[index]
        after = middle + heads.layer.mlp(rms_norm(heads.layer.post_norm, middle))
        pairs = {
            "attention output": (rebuilt, self.attended[index].float()),
            "residual stream": (after.float(), self.states[index + 1][self.probes].float()),
        }
        # Everything that is compared comes to this thread at once: each wait leaves a GPU idle.
        figures = torch.stack([x.abs().max() for one, own in pairs.values() for x in (one - own, own)]).tolist()
        for what, error, largest in zip(pairs, figures[::2], figures[1::2], strict=True):
            if not error <= limit * largest + 1e-7:
                raise ModelError(
                    f"layer {index} of {type(self.decoder.module).__name__}: the {what} rebuilt from its parts is off "
                    f"by {error:.3g} where the largest value is {largest:.3g}; this architecture has a part that is "
                    "not handled (a norm, bias, scaling, mask or cap), so no attribution is given"
                )


@torch.no_grad()
def trace_passage(module: CausalModule, ids: Sequence[int]) -> Trace:
    """One forward pass over token ids that keeps the residual stream; ``ModelError`` for NaN or an unknown build."""
    decoder = describe_decoder(module)
    probes = torch.linspace(0, len(ids) - 1, min(PROBES, len(ids)), device=decoder.device).round().long()
    # Parts by kernels only where they give what the model's own give; hooks on layers stay as they are.
    with FusedParts.of(decoder.base)(), _recording(decoder, probes) as (states, attended):
        tensor = torch.tensor([list(ids)], device=decoder.device)
        last = module(input_ids=tensor, use_cache=False, logits_to_keep=1).logits[0, -1].float()
    if not torch.isfinite(last).all():
        raise ModelError(f"{type(module).__name__} answers with NaN or infinite logits; its weights are not usable")
    trace = Trace(decoder, list(ids), states, probes, attended, decoder.rotary(len(ids)))
    embedded = module.get_input_embeddings()(tensor[0, probes])
    if not torch.allclose(embedded, states[0][probes], atol=1e-6, rtol=1e-3):
        raise ModelError(f"{type(module).__name__} changes its embeddings before the first layer; this is not handled")
    own = trace.logits(torch.tensor([len(ids) - 1], device=decoder.device))[0]
    if float((own - last).abs().max()) > TOLERANCE.get(decoder.dtype, 1e-4) * float(last.abs().max()):
        raise ModelError(
            f"{type(module).__name__} does more to its logits than a norm and a linear head; this is not handled"
        )
    return trace


@torch.no_grad()
def residual_states(decoder: Decoder, embeddings: Tensor) -> list[Tensor]:
    """The residual stream ((L + 1) x T x d) of a forward pass from input embeddings (T x d); no logits are computed."""
    nowhere = torch.zeros(0, dtype=torch.long, device=decoder.device)
    with _recording(decoder, nowhere) as (states, _):
        decoder.base(inputs_embeds=embeddings[None], use_cache=False)
    return states


@contextmanager
def _recording(decoder: Decoder, probes: Tensor) -> Iterator[tuple[list[Tensor], list[Tensor]]]:
    """Hooks that collect the input of every layer and of the final norm, and attention outputs at the probes."""
    states: list[Tensor] = []
    attended: list[Tensor] = []

    def keep_state(_: object, args: Any, kwargs: Any) -> None:
        states.append((args[0] if args else kwargs["hidden_states"])[0].detach())

    def keep_attention(_: object, __: object, output: Any) -> None:
        attended.append(output[0][0][probes].detach())

    handles = [layer.register_forward_pre_hook(keep_state, with_kwargs=True) for layer in decoder.base.layers]
    handles.append(decoder.base.norm.register_forward_pre_hook(keep_state, with_kwargs=True))
    handles += [layer.attention.register_forward_hook(keep_attention) for layer in decoder.layers]
    try:
        yield states, attended
    finally:
        for handle in handles:
            handle.remove()
