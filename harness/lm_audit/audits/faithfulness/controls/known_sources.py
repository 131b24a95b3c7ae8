"""Controls of the attributions: a model whose sources are known, and the same model with its weights drawn anew.

Every verdict counts samples that answer as they should and compares the exact limit of their share, of error ``ERROR``,
with one half: of 40 samples 31 must. By the binomial distribution a true share of 0.95 fails one such comparison in
48,000, and one of 0.5 passes it once in 2,900; what is seen is 1 where all is well, and chance or 0 where it is not.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.faithfulness.controls.copier import copied
from lm_audit.audits.faithfulness.controls.plain_attributions import wrong_attributions
from lm_audit.audits.faithfulness.deletion.metrics import rank_correlation
from lm_audit.audits.faithfulness.figures import cascade_figure
from lm_audit.audits.faithfulness.passage.samples import Sample
from lm_audit.audits.faithfulness.study import Study, prepare
from lm_audit.audits.second_opinion import found_wrong, held_by_its_rows
from lm_audit.evidence import Control, Evidence
from lm_audit.sources import MetricSource
from lm_audit.sources.record import Where
from lm_audit.stats import Estimate

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel

METHODS = ("flashtrace", "ifr", "attnlrp", "attention", "leave_one_out")
"""Methods that must pass the controls."""

REPORTED = ("input_x_gradient", "rollout")
"""Methods whose numbers on the controls stand beside the others without deciding: known to be weak there."""

OWN_POSITION = frozenset({"flashtrace", "ifr", "ifr_span", "ft_ifr"})
"""Methods whose row sits at a token's own position: it explains what the model reads there to predict the next one."""

SAMPLES = 40
"""Samples of a control."""

ERROR = 0.001
"""One-sided error of every limit that decides a control."""

KEPT_RANKING = 0.6
"""Rank correlation with the original model from which on a randomised model counts as keeping a sample's ranking."""

CASCADE = 12
"""Samples on which the steps before the last are shown, the model itself, explained a second time, among them."""


def distinct(samples: Sequence[Sample]) -> list[Sample]:
    """One sample a text: equal ones say nothing more."""
    return list({(sample.prompt, sample.generation): sample for sample in samples}.values())


def most(answers: Sequence[bool]) -> bool:
    """Whether more than half say yes: the exact lower limit of the share lies above 1/2."""
    return _limit(answers, "low") > 0.5


def few(answers: Sequence[bool]) -> bool:
    """Whether less than half say yes: the exact upper limit of the share lies below 1/2."""
    return _limit(answers, "high") < 0.5


def _limit(answers: Sequence[bool], side: str) -> float:
    from lm_audit.stats import clopper_pearson

    limit = getattr(clopper_pearson(sum(answers), len(answers), 1 - 2 * ERROR), side)
    return 0.5 if limit is None else float(limit)


def planted_span_evidence(model: LanguageModel, samples: Sequence[Sample], *, seed: int) -> Evidence:
    """Positive control: does each method find the letters that ``model`` copies by construction?

    A sample counts as found where each of its letters, explained alone, has its source as the user's heaviest token.
    Of a second model, in which every part counts, each method must give what plain passes give.
    """
    from lm_audit.stats import clopper_pearson

    samples = distinct(samples)
    copies = copied(model, samples)
    evidence = Evidence("faithfulness", parameters={"samples": len(samples), "seed": seed})
    studies = [prepare(model, sample) for sample in samples]
    chance = float(np.mean([len(study.explainer.passage.user) ** -float(len(study.gold)) for study in studies]))
    every: dict[str, list[bool]] = {}
    for method in METHODS + REPORTED:
        found = every[method] = [sources_found(study, method) for study in studies]
        estimate = replace(clopper_pearson(sum(found), len(found)), chance=chance, better="higher")
        source = MetricSource.mean("found", {"method": method})
        evidence.metric(f"faithfulness.planted_found.{method}", estimate, source)
        evidence.extend_rows(
            {"item": f"{study.sample.name}/{method}", "method": method, "found": hit, "copied": copies_it}
            for study, hit, copies_it in zip(studies, found, copies, strict=True)
        )
    evidence.control = planted_verdict(copies, every)
    names = {method: f"faithfulness.planted_found.{method}" for method in every}
    chances = dict.fromkeys(names.values(), guessed(samples))
    faults = found_wrong("an attribution", lambda: wrong_attributions(model.device))
    return held_by_its_rows(evidence, also=faults, chances=chances, counts=_asked(samples, every))


def guessed(samples: Sequence[Sample]) -> float:
    """The share of samples whose letters would all be found by naming any character of the prompt for each."""
    found = 0.0
    for sample in samples:
        wanted, share = len(sample.generation or ""), Fraction(1)
        for _ in range(wanted):
            share *= Fraction(1, len(sample.prompt))
        found += float(share)
    return found / len(samples)


def _asked(samples: Sequence[Sample], methods: Iterable[str], **where: str) -> list[tuple[Where, int]]:
    return [({"method": method, **where}, len(samples)) for method in methods]


def planted_verdict(copies: Sequence[bool], found: Mapping[str, Sequence[bool]]) -> Control:
    """Of each sample whether the model copies, and whether each method finds what it copies."""
    lost = [method for method in METHODS if not most(found[method])]
    return Control(
        "positive",
        most(copies) and not lost,
        f"the model copies, and {', '.join(METHODS)} find the letters, in more than half of the samples each (exact "
        f"lower limit, error {ERROR:g})",
        f"copied in {sum(copies)} of {len(copies)}; " + (f"not found by {', '.join(lost)}" if lost else "found by all"),
    )


def sources_found(study: Study, method: str) -> bool:
    """Whether the heaviest token of the user is the planted one, for each generated token explained alone."""
    ahead = 1 if method in OWN_POSITION else 0
    for row, source in enumerate(study.gold):
        sink = (study.sink[0] + row, study.sink[0] + row)
        weights = study.explainer.attribute(method, sink=sink).prompt_weights("row")
        if int(np.argmax(weights)) != source + ahead:
            return False
    return True


def randomised(model: LanguageModel, layers: int, seed: int) -> LanguageModel:
    """A copy with the top ``layers`` blocks (and the final norm) drawn anew; all blocks and the embeddings if more.

    Weights are drawn from a normal distribution with the spread of those they replace, norms are set to one.
    """
    import torch

    from lm_audit.models.language_model import LanguageModel

    module: Any = copy.deepcopy(model.module)
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


def randomised_weights_evidence(
    model: LanguageModel, samples: Sequence[Sample], *, seed: int, cascade: bool = True
) -> Evidence:
    """Negative control: cascading randomisation from the top; with all weights random the ranking must be gone.

    Explained a second time, the model itself must keep it: else numbers without any meaning would pass. ``cascade``
    shows the steps between, which decide nothing.
    """
    from lm_audit.stats import bounded_mean

    samples = distinct(samples)
    module: Any = model.module
    blocks = len(module.model.layers)
    evidence = Evidence("faithfulness", parameters={"samples": len(samples), "seed": seed})
    original = [prepare(model, sample) for sample in samples]
    shown: list[dict[str, Any]] = []
    again: dict[str, list[float]] = {}
    anew: dict[str, list[float]] = {}
    for layers in range(0, blocks + 2, 1 if cascade else blocks + 1):
        other = randomised(model, layers, seed + layers) if layers else model
        label, used = ("all", samples) if layers > blocks else (str(layers), samples[:CASCADE])
        studies = [prepare(other, sample) for sample in used]
        for method in METHODS + REPORTED:
            values = [_correlation(a, b, method) for a, b in zip(original, studies, strict=False)]
            estimate = bounded_mean(values, -1.0, 1.0, seed=seed)
            place = {"randomised": label, "method": method}
            shown.append(place | {"correlation": estimate.value, "low": estimate.low, "high": estimate.high})
            evidence.extend_rows(
                {"item": f"{sample.name}/{method}/{label}", **place, "correlation": value}
                for sample, value in zip(used, values, strict=True)
            )
            if layers > blocks:
                _add_correlation(evidence, method, estimate, place)
                anew[method] = values
            elif not layers:
                again[method] = values
    evidence.figures.append(cascade_figure(shown))
    evidence.control = randomised_verdict(again, anew)
    chances = {f"faithfulness.randomised_correlation.{method}": 0.0 for method in anew}
    return held_by_its_rows(evidence, chances=chances, counts=_asked(samples, anew, randomised="all"))


def randomised_verdict(again: Mapping[str, Sequence[float]], anew: Mapping[str, Sequence[float]]) -> Control:
    """Each method's rank correlations with the original model's: explained a second time, and with new weights."""
    kept = [method for method in METHODS if not few([value >= KEPT_RANKING for value in anew[method]])]
    lost = [method for method in METHODS if not most([value >= KEPT_RANKING for value in again[method]])]
    return Control(
        "negative",
        not kept and not lost,
        f"with all weights random {', '.join(METHODS)} keep the original model's ranking (rank correlation of "
        f"{KEPT_RANKING} or more) in less than half of the samples each, explained a second time in more than half "
        f"(exact limits, error {ERROR:g})",
        f"kept by {', '.join(kept) or 'none'}; not the same a second time: {', '.join(lost) or 'none'}",
    )


def _add_correlation(evidence: Evidence, method: str, estimate: Estimate, place: dict[str, Any]) -> None:
    name = f"faithfulness.randomised_correlation.{method}"
    evidence.metric(name, replace(estimate, chance=0.0, better="lower"), MetricSource.mean("correlation", place))


def _correlation(first: Study, second: Study, method: str) -> float:
    found = rank_correlation(*(study.attribution(method).prompt_weights("row") for study in (first, second)))
    # A constant attribution has no ranking; counting it as kept keeps an instrument that says nothing from passing.
    return 1.0 if found is None else found
