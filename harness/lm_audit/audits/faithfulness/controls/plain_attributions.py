"""Every method's attribution once more: by autograd, attention weights and forward passes of ``transformers``.

Asked of one small decoder in which nothing is negligible: random weights of wide spread, grouped queries, biases, q/k
norms and a window in one layer. On a model that copies by one head, what the other heads and layers do is not seen.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm_audit.audits.faithfulness.methods.explain import Explainer
from lm_audit.audits.faithfulness.methods.method_options import METHODS

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel

Matrix = NDArray[np.float64]

PROMPT = ("The fox ran, then hid.", " Who ran?")
ANSWER = ("The fox.", " It did")
"""Sentences of the passage, as the audit cuts them."""

LAYERS, HEADS, KV_HEADS, HEAD_WIDTH, WIDTH, WINDOW, SPREAD = 2, 4, 2, 16, 32, 9, 0.25
POINTS = 4
"""Of integrated gradients."""

APART = 1e-3
"""Largest difference from the plain attribution, as a share of its largest value. In float32 it is 1e-5."""


SPAN = (1, 4)
"""Generated tokens that gradients explain as one."""

ASKED: Mapping[str, tuple[str, dict[str, Any]]] = {
    **{method: (method, {}) for method in METHODS},
    "integrated_gradients": ("integrated_gradients", {"points": POINTS}),
    "attnlrp of a span": ("attnlrp", {"sink": SPAN}),
    "input_x_gradient of a span": ("input_x_gradient", {"sink": SPAN}),
}
"""What is held, and how an explainer is asked for it."""


def wrong_attributions(device: object = "cpu", asked: Iterable[str] = ASKED) -> list[str]:
    """What of ``asked`` is not as plain passes of the same model have it."""
    explainer = explainer_of(device)
    known = Plain(explainer).attributions()
    found = {name: explainer.attribute(ASKED[name][0], **ASKED[name][1]).matrix for name in asked}
    wrong = [name for name, matrix in found.items() if not _difference(matrix, known[name]) <= APART]
    return [f"{name} is not as plain passes have it" for name in wrong]


def explainer_of(device: object) -> Explainer:
    """The passage as the small decoder reads it."""
    return Explainer(_model(device), "".join(PROMPT), "".join(ANSWER))


def _difference(found: Matrix, known: Matrix) -> float:
    """NaN is where a method says nothing, 0 in the plain one."""
    return float(np.abs(np.nan_to_num(found) - known).max() / np.abs(known).max())


def _model(device: object) -> LanguageModel:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from lm_audit.models.language_model import LanguageModel
    from lm_audit.models.text.byte_tokenizer import TOKEN_IDS, byte_tokenizer

    config = Qwen3Config(
        **TOKEN_IDS,
        hidden_size=WIDTH,
        intermediate_size=48,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        head_dim=HEAD_WIDTH,
        max_position_embeddings=128,
        attention_bias=True,
        use_sliding_window=True,
        sliding_window=WINDOW,
        max_window_layers=1,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module: Any = Qwen3ForCausalLM(config)
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter.normal_(float("norm" in name), SPREAD)
    return LanguageModel(
        module.to(device, torch.float32).eval().requires_grad_(False), byte_tokenizer(128), name="small"
    )


def _scaled(x: Tensor, share: float) -> Tensor:
    """The same numbers, of whose gradient ``share`` passes."""
    return share * x + ((1 - share) * x).detach()


def _with_lrp_rules(module: Any) -> Any:
    """A copy whose gradients are AttnLRP's: scales count as constants, factors of a product get half each."""
    ruled = copy.deepcopy(module)

    def norm(part: Any, inputs: Any, _: Tensor) -> Tensor:
        (x,) = inputs
        scale = (x.pow(2).mean(-1, keepdim=True) + part.variance_epsilon).rsqrt().detach()
        scaled: Tensor = part.weight * x * scale
        return scaled

    for part in ruled.modules():
        if hasattr(part, "variance_epsilon"):
            part.register_forward_hook(norm)
    for layer in ruled.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        for projection, share in ((attention.q_proj, 0.25), (attention.k_proj, 0.25), (attention.v_proj, 0.5)):
            projection.register_forward_hook(lambda _, inputs, x, share=share: _scaled(x, share))
        mlp.act_fn.register_forward_hook(lambda _, inputs, x: inputs[0] * (x / (inputs[0] + 1e-10)).detach())
        mlp.down_proj.register_forward_pre_hook(lambda _, inputs: (_scaled(inputs[0], 0.5),))
    return ruled


@dataclass(frozen=True)
class _Layer:
    """What one pass shows of a layer: its input (T x d), attention's output (T x d) and weights (H x T x T), and each
    source's message through a head without bias (H x T x d).
    """

    inputs: Matrix
    attended: Matrix
    weights: Matrix
    messages: Matrix


@dataclass
class Plain:
    """The passage's attributions, each from plain passes."""

    explainer: Explainer

    def __post_init__(self) -> None:
        passage = self.explainer.passage
        self.module: Any = self.explainer.model.module
        self.prompt, self.generated = len(passage.prompt_ids), len(passage.generation_ids)
        self.ids = torch.tensor([passage.ids], device=self.module.device)
        self.eos = int(passage.generation_ids[-1])
        self.tokens = passage.tokens
        self.sink = np.arange(self.prompt, self.prompt + self.generated - 1)

    def attributions(self) -> Mapping[str, Matrix]:
        """G x (P + G) of every method, 0 where it says nothing."""
        flow = np.stack([self._flow([row], np.ones(1)) for row in range(self.prompt, self.ids.shape[1])])
        relevance = self._gradients(_with_lrp_rules(self.module), self._embedded(self.ids)[None], "logit")
        eager = np.stack([layer.weights.mean(0) for layer in self.layers])
        predicting = slice(self.prompt - 1, self.ids.shape[1] - 1)
        running = np.cumsum(eager[-1], 0) / np.arange(1, self.ids.shape[1] + 1)[:, None]
        rolled = np.eye(self.ids.shape[1])
        for mixing in eager:
            rolled = (mixing + np.eye(len(mixing))) / 2 @ rolled
        start = self.ids.new_full(self.ids.shape, self.eos)
        line = [self._embedded(start).lerp(self._embedded(self.ids), k / (POINTS - 1)) for k in range(POINTS)]
        steps = self._embedded(self.ids) - self._embedded(start)
        integrated = self._gradients(self.module, torch.stack(line), "logprob", steps)
        shares = np.array([0.5, *[1.0] * (POINTS - 2), 0.5]) / POINTS
        tokens = [[column] for column in range(len(self.tokens) - 1)]
        sentences, first = [], 0
        for text in (*PROMPT, *ANSWER):
            sentences.append(list(range(first, first + len(text))))
            first += len(text)
        plain = self._gradients(self.module, self._embedded(self.ids)[None], "logit")
        kept = np.array([text.strip() not in ("", ",", ".") for text in self.tokens], float)
        return {
            "ifr": flow,
            "ifr_span": self._span(self._flow(self.sink, np.ones(len(self.sink)))),
            "ft_ifr": self._hop(self._flow, np.ones(len(kept))),
            "flashtrace": self._hop(self._flow, kept) * kept[self.prompt :, None],
            "attnlrp": self._before(relevance[0]),
            "ft_attnlrp": self._hop(lambda rows, share: self._positive(relevance[0], share), np.ones(len(kept))),
            "integrated_gradients": self._before(np.tensordot(shares, integrated, 1)),
            "input_x_gradient": self._before(plain[0]),
            "attnlrp of a span": self._span(relevance[0][SPAN[0] : SPAN[1] + 1].mean(0), SPAN),
            "input_x_gradient of a span": self._span(plain[0][SPAN[0] : SPAN[1] + 1].mean(0), SPAN),
            "attention": self._before(eager.mean(0)[predicting]),
            "attention_reference": self._before(running[predicting]),
            "rollout": self._before(rolled[predicting]),
            "ablation": self._drops(sentences, lambda logprobs, chosen: chosen),
            "ablation_clp": self._drops(sentences, _concentrated),
            "leave_one_out": self._drops(tokens, lambda logprobs, chosen: chosen),
        }

    @cached_property
    def layers(self) -> list[_Layer]:
        """One pass with attention weights."""
        module = copy.deepcopy(self.module)
        module.set_attn_implementation("eager")
        values: list[Tensor] = []
        attended: list[Tensor] = []
        for layer in module.model.layers:
            layer.self_attn.v_proj.register_forward_hook(lambda part, _, x: values.append(x[0] - part.bias))
            layer.self_attn.register_forward_hook(lambda part, _, x: attended.append(x[0][0]))
        out = module(self.ids, output_attentions=True, output_hidden_states=True)
        found = []
        for k, layer in enumerate(module.model.layers):
            heads = values[k].view(-1, KV_HEADS, HEAD_WIDTH).repeat_interleave(HEADS // KV_HEADS, 1)
            through = layer.self_attn.o_proj.weight.view(WIDTH, HEADS, HEAD_WIDTH)
            messages = torch.einsum("the,dhe->htd", heads, through)
            parts = (out.hidden_states[k][0], attended[k], out.attentions[k][0], messages)
            found.append(_Layer(*(part.double().cpu().numpy() for part in parts)))
        return found

    def _embedded(self, ids: Tensor) -> Tensor:
        embedded: Tensor = self.module.get_input_embeddings()(ids)[0]
        return embedded

    def _gradients(self, module: Any, inputs: Tensor, kind: str, factor: Tensor | None = None) -> Matrix:
        """Gradient of every generated token's logit or log-probability in each of the inputs (B x T x d), times the
        input or ``factor``: B x G x T.
        """
        inputs = inputs.detach().requires_grad_(True)
        logits = module(inputs_embeds=inputs).logits[:, self.prompt - 1 : -1]
        scores = logits if kind == "logit" else logits.log_softmax(-1)
        rows = []
        for row, token in enumerate(self.ids[0, self.prompt :].tolist()):
            (slope,) = torch.autograd.grad(scores[:, row, token].sum(), inputs, retain_graph=True)
            rows.append((slope * (inputs if factor is None else factor)).sum(-1))
        products: Matrix = torch.stack(rows, 1).detach().double().cpu().numpy()
        return products

    def _before(self, rows: Matrix) -> Matrix:
        """Nothing from each row's own token on."""
        return np.tril(rows, self.prompt - 1)

    def _span(self, vector: Matrix, span: tuple[int, int] | None = None) -> Matrix:
        """The vector in every row of the span: all but that of the end-of-text token."""
        matrix = np.zeros((self.generated, len(vector)))
        first, last = span or (0, self.generated - 2)
        matrix[first : last + 1] = vector
        return matrix

    def _flow(self, rows: Any, shares: Matrix) -> Matrix:
        """IFR of the weighted rows taken together: shares of messages and of the stream, layer by layer."""
        tokens = np.zeros(self.ids.shape[1])
        for layer in self.layers:
            own, attended = shares @ layer.inputs[rows], shares @ layer.attended[rows]
            pooled = np.einsum("r,hrt->ht", shares, layer.weights[:, rows])
            near = _proximity(pooled[..., None] * layer.messages, own + attended)
            tokens += near.sum(0) / (near.sum() + _proximity(own, own + attended))
        return tokens

    def _hop(self, span: Callable[[Any, Matrix], Matrix], kept: Matrix) -> Matrix:
        """One hop: what the answer draws on, and what that part of it which lies in the answer draws on."""
        first = span(self.sink, kept[self.sink]) * kept
        carried = first[self.sink]
        second = span(self.sink, carried / carried.sum()) * kept
        total = first + carried.sum() / first.sum() * second
        total[self.prompt :] = 0.0
        return self._span(total)

    def _positive(self, relevance: Matrix, shares: Matrix) -> Matrix:
        """Relevance of the weighted rows taken together, negatives dropped, as shares."""
        vector: Matrix = np.maximum(shares @ relevance[:-1], 0.0)
        vector /= vector.sum()
        return vector

    def _drops(self, units: list[list[int]], score: Callable[[Tensor, Tensor], Tensor]) -> Matrix:
        """By how much the score of each later token falls where a unit is overwritten."""
        changed = self.ids.repeat(len(units) + 1, 1)
        for row, unit in enumerate(units):
            changed[row, unit] = self.eos
        logprobs = self.module(changed).logits[:, self.prompt - 1 : -1].double().log_softmax(-1)
        chosen = logprobs.gather(2, self.ids[:, self.prompt :, None].expand(len(changed), -1, 1))[..., 0]
        found = score(logprobs, chosen)
        drops = (found[-1:] - found[:-1]).cpu().numpy()
        matrix = np.zeros((self.generated, self.ids.shape[1]))
        for unit, drop in zip(units, drops, strict=True):
            later = max(0, unit[-1] + 1 - self.prompt)
            matrix[later:, unit] = drop[later:, None]
        return matrix


def _proximity(part: Matrix, whole: Matrix) -> Matrix:
    """How far the L1 distance to the whole shrinks by the part."""
    shrunk: Matrix = np.maximum(0.0, np.abs(whole).sum() - np.abs(whole - part).sum(-1))
    return shrunk


def _concentrated(logprobs: Tensor, chosen: Tensor) -> Tensor:
    """p times the sum over the vocabulary of its log-probability less every other one's."""
    product: Tensor = chosen.exp() * (chosen[..., None] - logprobs).sum(-1)
    return product
