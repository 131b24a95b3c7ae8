"""What the audit reports: one method over samples, and several methods compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lm_audit.audits.faithfulness.attribution import VIEWS
from lm_audit.audits.faithfulness.compare import Ranked, agreement, hidden_by_sentences, rank_methods, table_of
from lm_audit.audits.faithfulness.conclusions import record_gain
from lm_audit.audits.faithfulness.deletion.approximations import approximations
from lm_audit.audits.faithfulness.figures import (
    deletion_figure,
    methods_heatmap,
    ranking_figure,
    side_by_side,
    table_figure,
    token_heatmap,
)
from lm_audit.audits.faithfulness.options import MOST_HOPS
from lm_audit.audits.faithfulness.passage.samples import Sample
from lm_audit.audits.faithfulness.study import Scored, Study, prepare_all
from lm_audit.errors import UsageError
from lm_audit.evidence import Evidence
from lm_audit.shared.number_checks import check_choice, check_seed, check_whole
from lm_audit.sources import MetricSource
from lm_audit.stats import Estimate
from lm_audit.stats.covering import fewest_units, too_few

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

METRICS = ("rise", "mas", "rise_ap", "mas_normalised", "recovery")
"""Scores over samples; which direction is better stands in ``metric_table.py``."""

HOP_METHODS = frozenset({"ft_ifr", "flashtrace", "ft_attnlrp"})

CAVEAT = (
    "RISE and MAS belong to a deletion test and depend on the baseline token. MAS rewards flat attributions, and RISE "
    "is 0 where deletion raises the score: read them beside the uniform, random and gold-order references and the "
    "degenerate flag."
)


@dataclass(frozen=True)
class Settings:
    """How methods are scored: features, deletion steps, replacement, view, hops, seed."""

    unit: str = "token"
    steps: int | None = 20
    baseline: str = "eos"
    view: str = "row"
    hops: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("unit", self.unit, ("token", "sentence"))
        check_choice("baseline", self.baseline, ("eos", "pad", "mean", "random"))
        check_choice("view", self.view, VIEWS)
        if self.steps is not None:
            check_whole("steps", self.steps, 1, 10**6)
        check_whole("hops", self.hops, 0, MOST_HOPS)
        check_seed("seed", self.seed)

    def options(self, method: str) -> dict[str, Any]:
        """Options that a method is run with."""
        return {"hops": self.hops} if method in HOP_METHODS else {}

    def parameters(self) -> dict[str, Any]:
        """As recorded."""
        return dict(self.__dict__)


def score_studies(studies: Sequence[Study], methods: Sequence[str], settings: Settings) -> list[Scored]:
    """Every method on every sample."""
    return [_scored(study, method, settings) for study in studies for method in methods]


def _scored(study: Study, method: str, settings: Settings) -> Scored:
    attribution = study.attribution(method, **settings.options(method))
    return study.score(
        method, attribution, unit=settings.unit, view=settings.view, steps=settings.steps,
        baseline=settings.baseline, seed=settings.seed,
    )  # fmt: skip


def _estimates(scored: Sequence[Scored], seed: int) -> dict[str, Estimate]:
    """Means over samples that are not degenerate (intervals from 8 on), and the share of degenerate ones."""
    from lm_audit.stats import clopper_pearson, mean_interval

    found: dict[str, Estimate] = {}
    for metric in METRICS:
        values = list(table_of(scored, metric).get(scored[0].method, {}).values())
        if values:
            estimate = mean_interval(values, seed=seed, n_resamples=2000)
            found[f"faithfulness.{metric}"] = estimate
        else:
            reason = (
                "no sample has a value: no evidence is known, the gold order is no better than random, or deleting "
                "everything does not lower the score"
            )
            found[f"faithfulness.{metric}"] = Estimate.not_estimable(reason, n=len(scored))
    degenerate = sum(one.curve.degenerate for one in scored)
    found["faithfulness.degenerate_share"] = replace(clopper_pearson(degenerate, len(scored)), better="lower")
    return found


def _source(metric: str) -> MetricSource:
    """The mean of the column over samples that are not degenerate; of the share of these over all."""
    column = metric.removeprefix("faithfulness.")
    if column == "degenerate_share":
        return MetricSource.mean("degenerate")
    return MetricSource.mean(column, {"degenerate": False})


def method_scores(
    model: LanguageModel,
    samples: Sequence[Sample],
    *,
    method: str,
    unit: str = "token",
    steps: int | None = 20,
    baseline: str = "eos",
    view: str = "row",
    hops: int = 1,
    chat: bool = False,
    seed: int = 0,
) -> Evidence:
    """One attribution method over samples, as the audit's cases record it; see :class:`Settings` for the options.

    ``samples`` are :func:`~lm_audit.audits.faithfulness.passage.user_samples.read_samples` of a file, or generated
    ones. Raises ``UsageError`` for no samples and for an option that cannot be meant, and what
    :func:`~lm_audit.audits.faithfulness.study.prepare_all` raises.
    """
    if not samples:
        raise UsageError("samples is empty; at least one is needed")
    settings = Settings(unit=unit, steps=steps, baseline=baseline, view=view, hops=hops, seed=seed)
    studies, notes = prepare_all(model, samples, chat=chat)
    evidence = method_evidence(studies, method, settings)
    evidence.notes += notes
    return evidence


def method_evidence(studies: Sequence[Study], method: str, settings: Settings) -> Evidence:
    """One method over samples: scores with intervals, references beside them, heatmap and deletion curve."""
    evidence = Evidence("faithfulness", parameters={"method": method, **settings.parameters()}, notes=[CAVEAT])
    scored = score_studies(studies, [method], settings)
    record_method(evidence, scored, [_reference_row(study, settings) for study in studies], settings)
    for study, one in zip(studies[:3], scored[:3], strict=True):
        attribution = study.attribution(method, **settings.options(method))
        references = study.reference_curves(settings.unit, settings.steps, settings.baseline, settings.seed)
        evidence.figures.append(token_heatmap(study, attribution, f"tokens_{study.sample.name}"))
        title = f"Deletion of {settings.unit}s by {method}: {study.sample.name}"
        evidence.figures.append(deletion_figure(one.curve, references, title, f"deletion_{study.sample.name}"))
    if method in HOP_METHODS:
        evidence.figures.append(_hop_table(studies, method, settings))
    _note_few(evidence)
    _note_flat(evidence, scored)
    _note_details(evidence, studies, method, settings)
    return evidence


def record_method(
    evidence: Evidence, scored: Sequence[Scored], references: Sequence[Mapping[str, Any]], settings: Settings
) -> None:
    """Every number of one method over samples, each with what references score on it (columns such as ``mas_random``),
    and what is concluded."""
    for name, estimate in _estimates(scored, settings.seed).items():
        evidence.metric(name, estimate, _source(name))
    evidence.headline = "faithfulness.mas"
    evidence.extend_rows(one.row() | dict(other) for one, other in zip(scored, references, strict=True))
    record_gain(evidence, evidence.rows, scored[0].method, settings.unit, settings.seed)


def _reference_row(study: Study, settings: Settings) -> dict[str, Any]:
    references = study.reference_curves(settings.unit, settings.steps, settings.baseline, settings.seed)
    random = [curve for name, curve in references.items() if name.startswith("random")]
    row: dict[str, Any] = {}
    for metric in ("rise", "mas"):
        row[f"{metric}_uniform"] = getattr(references["uniform"], metric)
        row[f"{metric}_random"] = sum(getattr(curve, metric) for curve in random) / len(random)
        row[f"{metric}_gold"] = getattr(references["gold"], metric) if "gold" in references else None
    return row


def _hop_table(studies: Sequence[Study], method: str, settings: Settings) -> Any:
    """Scores after each hop: what the recursion adds."""
    rows = []
    for study in studies:
        hops = study.attribution(method, **settings.options(method)).hops
        if hops is None:
            continue
        features = len(study.explainer.passage.user)
        for number, total in enumerate(hops.observed.cumsum(axis=0)):
            one = study.score(
                f"{method} after hop {number}", total[:features], unit=settings.unit, view=settings.view,
                steps=settings.steps, baseline=settings.baseline, seed=settings.seed,
            )  # fmt: skip
            row = one.row()
            left = hops.ratios[number] if hops.ratios else None
            rows.append({"sample": row["sample"], "hop": number, "mass_left": left,
                         "rise": row["rise"], "mas": row["mas"], "recovery": row["recovery"]})  # fmt: skip
    columns = ("sample", "hop", "mass_left", "rise", "mas", "recovery")
    return table_figure("hops", f"{method} hop by hop", columns, rows, "Scores of what was observed up to each hop.")


def _note_few(evidence: Evidence) -> None:
    """Say that the means decide nothing where they rest on too few samples for an interval."""
    headline = evidence.metrics["faithfulness.mas"]
    if headline.value is not None and too_few(headline):
        evidence.notes.append(
            f"faithfulness.mas can reach no verdict here, nor the other means: {headline.n} samples give no interval, "
            f"{fewest_units(headline)} do."
        )


def _note_flat(evidence: Evidence, scored: Sequence[Scored]) -> None:
    flat = [one.sample for one in scored if one.curve.flat]
    if flat:
        evidence.notes.append(
            f"All weights of the view are equal (for instance all zero) for {', '.join(flat)}: the deletion order is "
            "then the order of the text, the density a straight line, and recovery is not defined."
        )
    degenerate = [one.sample for one in scored if one.curve.degenerate]
    if degenerate:
        evidence.notes.append(
            f"Deleting everything does not lower the score of {', '.join(degenerate)}; left out of the means."
        )


def _note_details(evidence: Evidence, studies: Sequence[Study], method: str, settings: Settings) -> None:
    if method != "integrated_gradients":
        return
    gaps = [float(study.attribution(method).details["completeness_gap"].max()) for study in studies]
    evidence.notes.append(
        f"Integrated gradients miss completeness by up to {100 * max(gaps):.0f} % of the change of the objective; "
        "below 5 % the integral may be called converged."
    )


def comparison_evidence(studies: Sequence[Study], methods: Sequence[str], settings: Settings) -> Evidence:
    """Methods ranked by each metric, their agreement, token against sentence, and (of tokens) the price of
    approximation."""
    evidence = Evidence("faithfulness", parameters={"methods": list(methods), **settings.parameters()}, notes=[CAVEAT])
    scored = score_studies(studies, methods, settings)
    evidence.figures.append(ranking_figure(record_ranking(evidence, scored, settings)))
    evidence.figures.append(_agreement_table(studies, methods, settings))
    evidence.figures.append(_hidden_table(studies, methods, settings, scored))
    if settings.unit == "token":
        evidence.figures.append(_approximation_table(studies[0], methods[0], settings))
    attributions = {method: studies[0].attribution(method, **settings.options(method)) for method in methods}
    evidence.figures.append(methods_heatmap(studies[0], attributions))
    evidence.figures.append(side_by_side(studies[0], attributions))
    _note_flat(evidence, scored)
    return evidence


def record_ranking(evidence: Evidence, scored: Sequence[Scored], settings: Settings) -> list[Ranked]:
    """The rows of several methods, the mean MAS of each, and their places by every metric."""
    evidence.extend_rows(one.row() for one in scored)
    ranked = [
        place for metric in METRICS for place in rank_methods(table_of(scored, metric), metric, seed=settings.seed)
    ]
    for place in ranked:
        if place.metric == "mas":
            source = MetricSource.mean("mas", {"method": place.method, "degenerate": False})
            evidence.metric(f"faithfulness.mas.{place.method}", replace(place.mean, better="lower"), source)
    return ranked


def _agreement_table(studies: Sequence[Study], methods: Sequence[str], settings: Settings) -> Any:
    weights: dict[str, Mapping[str, Any]] = {
        method: {
            study.sample.name: study.attribution(method, **settings.options(method)).prompt_weights(settings.view)
            for study in studies
        }
        for method in methods
    }
    columns = ("first", "second", "spearman", "samples")
    return table_figure(
        "agreement", "Rank correlation between methods", columns, agreement(weights), "Spearman over the user's tokens."
    )


def _hidden_table(
    studies: Sequence[Study], methods: Sequence[str], settings: Settings, scored: Sequence[Scored]
) -> Any:
    token = scored if settings.unit == "token" else score_studies(studies, methods, replace(settings, unit="token"))
    sentence = (
        scored if settings.unit == "sentence" else score_studies(studies, methods, replace(settings, unit="sentence"))
    )
    columns = ("sample", "first", "second", "token_difference")
    return table_figure(
        "hidden_by_sentences",
        "What sentences hide",
        columns,
        hidden_by_sentences(token, sentence),
        "Pairs of methods whose MAS differs by 0.05 or more at token level and not at all at sentence level.",
    )


def _approximation_table(study: Study, method: str, settings: Settings) -> Any:
    weights = study.attribution(method, **settings.options(method)).prompt_weights(settings.view)
    strict = study.test("token", None, settings.baseline).curve(weights)
    columns = ("kind", "k", "sequences", "rise", "mas", "rise_error", "mas_error", "rise_ap_error")
    rows = [one.row() for one in approximations(strict)]
    return table_figure(
        "approximations",
        f"Approximate against strict deletion: {study.sample.name}, {method}",
        columns,
        rows,
        f"Strict: one token a step, {len(strict.scores)} sequences, RISE {strict.rise:.3f}, MAS {strict.mas:.3f}.",
    )
