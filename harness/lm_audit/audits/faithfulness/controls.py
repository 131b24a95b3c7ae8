"""Controls: a model that copies a known span, the same model with its weights randomised, and random attributions."""

from __future__ import annotations

import copy
import string
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.faithfulness.metrics import rank_correlation
from lm_audit.audits.faithfulness.samples import Sample
from lm_audit.audits.faithfulness.study import Study, prepare
from lm_audit.evidence import Control, Evidence, Figure
from lm_audit.stats import Estimate

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel

ASK = "="
COPIED, BACK = 3, 10
"""The answer repeats the ``COPIED`` letters that begin ``BACK`` positions before the question sign."""

METHODS = ("flashtrace", "ifr", "attnlrp", "attention", "leave_one_out")
"""Methods that must pass the controls."""

REPORTED = ("input_x_gradient", "rollout")
"""Methods whose numbers on the controls stand beside the others without deciding: known to be weak there."""

COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999"]
"""Okabe and Ito's, one a method."""

KEPT_RANKING = 0.5
"""Mean rank correlation with the trained model below which a randomised model counts as not keeping the ranking."""


@dataclass(frozen=True)
class CopyTask:
    """Texts to train on, and samples to explain whose answer is the marked letters."""

    texts: tuple[str, ...]
    samples: tuple[Sample, ...]


def copy_task(count: int, held_out: int, seed: int) -> CopyTask:
    """Random letters of 14 to 22, of which three at a known place are repeated at the end; the same for the same
    seed.
    """
    rng = np.random.default_rng([seed, 3])
    made = [_copy_sample(rng, f"copy-{number}") for number in range(count + held_out)]
    texts = tuple(f"{sample.prompt}{sample.generation}" for sample in made[:count])
    return CopyTask(texts, tuple(made[count:]))


def _copy_sample(rng: np.random.Generator, name: str) -> Sample:
    length = int(rng.integers(14, 23))
    letters = "".join(rng.choice(list(string.ascii_lowercase), size=length))
    start = length - BACK
    answer = letters[start : start + COPIED]
    return Sample(name, letters + ASK, answer, ((start, start + COPIED),), output=(0, COPIED))


def copying_model(
    base: LanguageModel, task: CopyTask, *, seed: int, epochs: int = 12, lr: float = 3e-3
) -> LanguageModel:
    """``base`` trained on the copy task."""
    from lm_audit.models.tiny import train_tiny

    rows = [list(base.tokenizer(text, add_special_tokens=False).input_ids) for text in task.texts]
    return train_tiny(base, rows, seed=seed, epochs=epochs, lr=lr, batch_size=32)


@lru_cache(maxsize=2)
def trained_copier(base: LanguageModel, *, seed: int, train: int, held_out: int) -> tuple[CopyTask, LanguageModel]:
    """The task and the model that learnt it; kept, since both weight controls need it."""
    task = copy_task(train, held_out, seed)
    return task, copying_model(base, task, seed=seed)


def copy_accuracy(model: LanguageModel, samples: Sequence[Sample]) -> float:
    """Share of samples whose letters are all the model's first choice."""

    def ids(text: str | None) -> list[int]:
        return list(model.tokenizer(text or "", add_special_tokens=False).input_ids)

    requests = [(ids(sample.prompt), ids(sample.generation)) for sample in samples]
    scores = model.loglikelihood(requests, bos="none")
    return float(np.mean([bool(score.greedy) for score in scores]))


def planted_span_evidence(base: LanguageModel, *, seed: int, train: int = 1500, held_out: int = 20) -> Evidence:
    """Positive control: each method's recall of the planted letters, against chance, on a model that must use them."""
    from lm_audit.stats import bootstrap_ci

    task, model = trained_copier(base, seed=seed, train=train, held_out=held_out)
    accuracy = copy_accuracy(model, task.samples)
    evidence = Evidence("faithfulness", parameters={"train": train, "held_out": held_out, "seed": seed})
    studies = [prepare(model, sample) for sample in task.samples]
    failed = []
    for method in METHODS + REPORTED:
        recalls = [planted_recall(study, method) for study in studies]
        chance = float(np.mean([len(study.gold) / len(study.explainer.passage.user) for study in studies]))
        estimate = bootstrap_ci(recalls, seed=seed, n_resamples=2000)
        evidence.metric(f"faithfulness.planted_recall.{method}", _with_chance(estimate, chance))
        if method in METHODS and (estimate.low or 0.0) <= chance:
            failed.append(method)
        evidence.extend_rows(
            {"item": f"{study.sample.name}/{method}", "method": method, "recall": recall}
            for study, recall in zip(studies, recalls, strict=True)
        )
    passed = accuracy >= 0.9 and not failed
    evidence.control = Control(
        "positive",
        passed,
        f"the model copies (accuracy 0.9 or more); {', '.join(METHODS)} find the letters (interval of the recall above "
        "chance)",
        f"accuracy {accuracy:.2f}; " + (f"not found by {', '.join(failed)}" if failed else "found by every method"),
    )
    return evidence


def planted_recall(study: Study, method: str) -> float:
    """Recall of the planted tokens among as many of the highest weights of the row view."""
    weights = study.attribution(method).prompt_weights("row")
    order = np.argsort(-weights, kind="stable")[: len(study.gold)]
    return len(set(order.tolist()) & set(study.gold)) / len(study.gold)


def _with_chance(estimate: Estimate, chance: float) -> Estimate:
    return replace(estimate, chance=chance, better="higher")


def randomised(model: LanguageModel, layers: int, seed: int) -> LanguageModel:
    """A copy with the top ``layers`` blocks (and the final norm) drawn anew; all blocks and the embeddings if more.

    Weights are drawn from a normal distribution with the spread of those they replace, norms are set to one.
    """
    import torch

    from lm_audit.models.language_model import LanguageModel

    module = copy.deepcopy(model.module)
    generator = torch.Generator().manual_seed(seed)
    blocks = list(module.model.layers)
    parts: list[Any] = [module.model.norm, *reversed(blocks)][: layers + 1]
    if layers > len(blocks):
        parts += [module.model.embed_tokens, module.lm_head]
    with torch.no_grad():
        for part in parts:
            for parameter in part.parameters():
                if parameter.ndim < 2:
                    parameter.fill_(1.0)
                else:
                    drawn = torch.randn(parameter.shape, generator=generator) * parameter.float().std().cpu()
                    parameter.copy_(drawn.to(parameter))
    return LanguageModel(module, model.tokenizer, name=f"{model.name}-randomised-{layers}")


def randomised_weights_evidence(base: LanguageModel, *, seed: int, train: int = 1500, held_out: int = 20) -> Evidence:
    """Negative control: cascading randomisation from the top; with all weights random the ranking must be gone."""
    from lm_audit.stats import bootstrap_ci

    task, model = trained_copier(base, seed=seed, train=train, held_out=held_out)
    blocks = len(model.module.model.layers)
    evidence = Evidence("faithfulness", parameters={"train": train, "held_out": held_out, "seed": seed})
    trained = [prepare(model, sample) for sample in task.samples]
    rows, kept = [], []
    for layers in range(1, blocks + 2):
        other = randomised(model, layers, seed + layers)
        studies = [prepare(other, sample) for sample in task.samples]
        for method in METHODS + REPORTED:
            correlations = [_correlation(a, b, method) for a, b in zip(trained, studies, strict=True)]
            estimate = bootstrap_ci(correlations, seed=seed, n_resamples=2000)
            label = "all" if layers > blocks else str(layers)
            rows.append(
                {
                    "randomised": label,
                    "method": method,
                    "correlation": estimate.value,
                    "low": estimate.low,
                    "high": estimate.high,
                }
            )
            if layers > blocks:
                evidence.metric(f"faithfulness.randomised_correlation.{method}", estimate)
                if method in METHODS and (estimate.high is None or estimate.high >= KEPT_RANKING):
                    kept.append(method)
    evidence.figures.append(_cascade_figure(rows))
    evidence.extend_rows({"item": f"{row['method']}/{row['randomised']}", **row} for row in rows)
    evidence.control = Control(
        "negative",
        not kept,
        f"with all weights random {', '.join(METHODS)} lose the trained model's ranking (interval of the rank "
        f"correlation below {KEPT_RANKING})",
        f"kept by {', '.join(kept)}" if kept else "kept by none",
    )
    return evidence


def _correlation(first: Study, second: Study, method: str) -> float:
    found = rank_correlation(*(study.attribution(method).prompt_weights("row") for study in (first, second)))
    return 0.0 if found is None else found


def _cascade_figure(rows: Sequence[dict[str, Any]]) -> Figure:
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "data": {"values": list(rows)},
        "width": "container",
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "randomised", "type": "ordinal", "title": "blocks randomised from the top", "sort": None},
            "y": {"field": "correlation", "type": "quantitative", "title": "rank correlation with the trained model"},
            "color": {"field": "method", "type": "nominal", "scale": {"range": COLOURS}},
            "tooltip": [{"field": "method"}, {"field": "randomised"}, {"field": "correlation", "format": ".2f"}],
        },
    }  # fmt: skip
    return Figure(
        "cascade", "Cascading randomisation", "vega-lite", spec, "An explanation of the weights must fall to about 0."
    )


def random_attribution_evidence(studies: Sequence[Study], *, steps: int, seed: int) -> Evidence:
    """Negative control: attributions of random numbers against independent random orders, in RISE and MAS."""
    from lm_audit.stats import bootstrap_ci

    rng = np.random.default_rng([seed, 4])
    evidence = Evidence("faithfulness", parameters={"steps": steps, "seed": seed, "samples": len(studies)})
    values: dict[str, dict[str, list[float]]] = {side: {"rise": [], "mas": []} for side in ("attribution", "chance")}
    for study in studies:
        test = study.test("token", steps, "eos")
        curves = test.curves({side: rng.random(len(test.units)) for side in values})
        for side, curve in curves.items():
            for metric in ("rise", "mas"):
                values[side][metric].append(getattr(curve, metric))
        evidence.extend_rows(
            [{"item": study.sample.name, **{f"{side}_mas": curve.mas for side, curve in curves.items()}}]
        )
    apart = []
    for metric in ("rise", "mas"):
        drawn, chance = (bootstrap_ci(values[side][metric], seed=seed, n_resamples=2000) for side in values)
        evidence.metric(f"faithfulness.random_{metric}", _with_direction(drawn))
        evidence.metric(f"faithfulness.chance_{metric}", _with_direction(chance))
        if not _overlap(drawn, chance):
            apart.append(metric)
    evidence.control = Control(
        "negative",
        not apart,
        "random attributions are no better than independent random orders: their intervals over samples overlap",
        f"apart in {', '.join(apart)}" if apart else "intervals overlap in RISE and MAS",
    )
    return evidence


def _with_direction(estimate: Estimate) -> Estimate:
    return replace(estimate, better="lower")


def _overlap(first: Estimate, second: Estimate) -> bool:
    edges = (first.low, first.high, second.low, second.high)
    if any(edge is None for edge in edges):
        return False
    return bool(first.low <= second.high and second.low <= first.high)  # type: ignore[operator]
