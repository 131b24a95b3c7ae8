"""What the controls of the preference grid are made of: names without meaning, and a preference of known size planted.

The plant edits the LM head alone. For prompts with last hidden states h, a vector u with u.h = size/2 after one group's
prompts and -size/2 after the other's is added to the head's rows of the tokens at which the positive words part from
the negative ones. It shifts d = log p(positive) - log p(negative) by u.h exactly, since the normaliser cancels in d.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.bias.grid.lexicon.parts import WordPair
from lm_audit.audits.bias.grid.measurement import Floats
from lm_audit.audits.bias.grid.words import word_loglikelihood
from lm_audit.errors import UsageError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.text import text_ids
from lm_audit.stats import CrossedContrast, crossed_contrast

if TYPE_CHECKING:
    import torch

    from lm_audit.models import LanguageModel

_ONSETS = ("Bl", "Dr", "Fl", "Gr", "K", "L", "M", "N", "Pr", "R", "S", "T", "V", "Z")
_VOWELS = ("a", "e", "i", "o", "u")
_CODAS = ("b", "dd", "lm", "n", "nk", "r", "rv", "ss", "th", "x")


@dataclass(frozen=True)
class NoncePrompts:
    """Prompts that name people by invented names: row t holds one name of each side in the same template."""

    first: tuple[str, ...]
    second: tuple[str, ...]


def nonce_names(n: int, *, seed: int) -> list[str]:
    """n different capitalised names without meaning, from syllables drawn by the seed."""
    rng = np.random.default_rng(seed)
    names: dict[str, None] = {}
    while len(names) < n:
        parts = [rng.choice(part) for part in (_ONSETS, _VOWELS, _CODAS, _VOWELS, _CODAS)]
        names["".join(parts)] = None
    return list(names)


def nonce_prompts(templates: Sequence[str], *, seed: int = 0) -> NoncePrompts:
    """One prompt a template and side; templates hold ``{name}``. No name is used twice, so that templates vary with
    names and the interval covers both."""
    names = nonce_names(2 * len(templates), seed=seed)
    first = tuple(template.replace("{name}", name) for template, name in zip(templates, names[::2], strict=True))
    second = tuple(template.replace("{name}", name) for template, name in zip(templates, names[1::2], strict=True))
    return NoncePrompts(first, second)


def nonce_contrast(
    model: LanguageModel, prompts: NoncePrompts, pairs: Sequence[WordPair], *, confidence: float = 0.95, seed: int = 0
) -> CrossedContrast:
    """First side minus second side over whole words, tested as every contrast of the grid is."""
    words = [word for pair in pairs for word in (pair.positive, pair.negative)]

    def log_odds(side: Sequence[str]) -> Floats:
        lp = word_loglikelihood(model, side, words)["lp"].to_numpy(dtype=np.float64).reshape(len(side), -1, 2)
        return np.asarray(lp[..., 0] - lp[..., 1], dtype=np.float64)

    table = log_odds(prompts.first) - log_odds(prompts.second)
    return crossed_contrast(table, confidence=confidence, n_resamples=2000, seed=seed)


@dataclass(frozen=True)
class Decision:
    """Where a pair's words part: the tokens that both begin with, and the next token of each."""

    shared: tuple[int, ...]
    positive: int
    negative: int


def decisions(model: LanguageModel, pairs: Sequence[WordPair]) -> list[tuple[WordPair, Decision]]:
    """The pairs in which a preference can be planted: no token that one of them favours is disfavoured by another.

    A byte-level tokenizer, whose words part at a letter, leaves fewer pairs than one with whole-word tokens.
    """
    kept: list[tuple[WordPair, Decision]] = []
    for pair in pairs:
        decision = _decision(model, pair)
        if decision is not None and not any(
            decision.positive == other.negative or decision.negative == other.positive for _, other in kept
        ):
            kept.append((pair, decision))
    return kept


def _decision(model: LanguageModel, pair: WordPair) -> Decision | None:
    first, second = (
        model.tokenizer(f" {word}", add_special_tokens=False)["input_ids"] for word in (pair.positive, pair.negative)
    )
    for place, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return Decision(tuple(first[:place]), int(a), int(b))
    return None  # one word begins with the other


def decision_contrast(
    model: LanguageModel,
    prompts: NoncePrompts,
    usable: Sequence[tuple[WordPair, Decision]],
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> CrossedContrast:
    """As :func:`nonce_contrast`, each word scored at the token where it parts from the other one of its pair.

    For words of one token that is the whole word; for others it is the token that a plant reaches exactly.
    """
    sides = [*prompts.first, *prompts.second]
    tokens = [(decision.shared, token) for _, decision in usable for token in (decision.positive, decision.negative)]
    prompt_ids = [text_ids.prompt_ids(model.tokenizer, prompt) for prompt in sides]
    requests = [([*ids, *shared], [token]) for ids in prompt_ids for shared, token in tokens]
    # The ids already hold whatever the tokenizer adds by default.
    lp = np.array([score.total for score in model.loglikelihood(requests, bos="none")]).reshape(len(sides), -1, 2)
    first, second = np.split(lp[..., 0] - lp[..., 1], 2)
    return crossed_contrast(first - second, confidence=confidence, n_resamples=2000, seed=seed)


def plant_preference(
    model: LanguageModel, prompts: NoncePrompts, usable: Sequence[tuple[WordPair, Decision]], size: float
) -> LanguageModel:
    """A model that shares every weight but the head, and prefers the first side's people by ``size`` nats.

    ``usable`` is what :func:`decisions` gives. The shift is exact at the token where a pair's words part; what follows
    in longer words moves too, by amounts that nobody chose. Raises ``UsageError`` where there is no pair.
    """
    from lm_audit.models import LanguageModel as Wrapped

    if not usable:
        raise UsageError("no pair of words parts at tokens of its own, so no preference can be planted")
    endings = sorted({decision.shared for _, decision in usable})
    hidden = _last_hidden(model, [*prompts.first, *prompts.second], endings)
    wanted = np.repeat([size / 2, -size / 2], [len(prompts.first) * len(endings), len(prompts.second) * len(endings)])
    direction = np.linalg.lstsq(hidden, wanted, rcond=None)[0]
    planted = _with_own_head(model.module)
    weight = planted.get_output_embeddings().weight
    import torch

    with torch.no_grad():
        favoured = sorted({decision.positive for _, decision in usable})
        weight[favoured] += torch.as_tensor(direction, dtype=weight.dtype, device=weight.device)
    return Wrapped(planted, model.tokenizer, name=f"{model.name}+planted")


def _last_hidden(
    model: LanguageModel, prompts: Sequence[str], endings: Sequence[tuple[int, ...]]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """What the head reads after each prompt and ending, shape (prompts * endings, width), float64."""
    import torch

    seen: list[torch.Tensor] = []

    def keep(_module: CausalModule, inputs: tuple[torch.Tensor, ...]) -> None:
        seen.append(inputs[0][0, -1].double().cpu())

    handle = model.module.get_output_embeddings().register_forward_pre_hook(keep)
    try:
        with torch.no_grad():
            for prompt, ending in product(prompts, endings):
                ids = [*text_ids.prompt_ids(model.tokenizer, prompt), *ending]
                model.module(input_ids=torch.tensor([ids], device=model.device), use_cache=False)
    finally:
        handle.remove()
    return np.stack([state.numpy() for state in seen])


def _with_own_head(module: CausalModule) -> Any:
    """A module that shares every part with ``module`` except its head, a copy (also where weights are tied)."""
    import torch

    from lm_audit.models.compat import sharing_copy

    clone = sharing_copy(module)
    head = module.get_output_embeddings()
    own = torch.nn.Linear(head.in_features, head.out_features, bias=head.bias is not None, device="meta")
    own.weight = torch.nn.Parameter(head.weight.detach().clone(), requires_grad=False)
    if head.bias is not None:
        own.bias = torch.nn.Parameter(head.bias.detach().clone(), requires_grad=False)
    clone.set_output_embeddings(own)
    return clone
