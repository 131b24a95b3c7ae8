"""Of which rows each metric of the privacy audit was made, so that two runs can be compared canary by canary.

The unit is the canary (or ordinary document); there are no clusters among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lm_audit.audits.privacy.attribution.directions import RISK
from lm_audit.audits.privacy.stages.stage_names import TRANSITIONS
from lm_audit.sources import MetricSource, Term

MEMBER, TWIN, DOCUMENT = {"role": "member"}, {"role": "control"}, {"role": "document"}
PRIMARY_SCORE = "span_mean_logprob"
IDENTITY = ("item", "content", "stage", "role", "canary_id", "repetitions")

PER_CANARY: Mapping[str, str] = {
    "Avg_LogProb": "mean_logprob",
    "Avg_Rank": "last_token_rank0",
    "Canary_PPL": "ppl",
    "Extraction_Rate": "source_extracted",
    "Top5_Hit_Rate": "top5",
    "Top10_Hit_Rate": "top10",
    "Top50_Hit_Rate": "top50",
}
"""The source design's metrics that are a mean over canaries, and the column that holds a canary's value."""

INSTABILITY = {"stability": "prompt_instability", "source.stability": "source_prompt_instability"}


def stage_source(stage: str, name: str) -> MetricSource | None:
    """The source of a stage's metric by its short name, None for one that no rows give."""
    here = {"stage": stage}
    head, _, rest = name.partition(".")
    if name in INSTABILITY:
        column = INSTABILITY[name]
        return MetricSource("privacy.stability", column, here | MEMBER, options={"column": column})
    if head == "source":
        return _design_source(here, rest)
    if head == "tpr_at_0":
        return _sided("tpr_at_fpr", _scored(rest.partition(".")[2]), here, fpr=f"0.{rest.partition('.')[0]}")
    if head in ("roc_auc", "pr_auc"):
        return _sided("auc" if head == "roc_auc" else "average_precision", _scored(rest), here)
    if head == "exposure":
        return _sided("exposure", PRIMARY_SCORE, here, tier={"repetitions": int(rest.removeprefix("r"))})
    if head == "exposure_exact":
        tier = {"repetitions": int(rest.removeprefix("r"))}
        return MetricSource.mean("exposure_exact", here | MEMBER | tier)
    if name == "extraction.in_thought":
        return MetricSource.mean("secret_in_thought", here | MEMBER)
    if name == "extraction.sampled":
        return MetricSource.mean("sampled_hits", here | MEMBER)
    if head == "extraction":
        role, _, prefix = rest.partition(".")
        return MetricSource.mean(f"extracted_{prefix}", here | {"role": role})
    if name == "epsilon":
        return MetricSource("privacy.epsilon", PRIMARY_SCORE, here | {"role": ["member", "control"]})
    return None


def did_source(transition: str) -> MetricSource:
    """The source of the difference in differences: each canary's change, members' mean minus twins' mean."""
    before, after = TRANSITIONS[transition]
    terms = (Term(1.0, {"stage": after}), Term(-1.0, {"stage": before}))
    both = {"stage": [before, after], "role": ["member", "control"]}
    return MetricSource.difference(PRIMARY_SCORE, MEMBER, TWIN, where=both, unit=("canary_id",), terms=terms)


def _scored(column: str) -> str:
    return column or PRIMARY_SCORE


def _sided(statistic: str, column: str, here: Mapping[str, object], **options: object) -> MetricSource:
    where = {**here, "role": ["member", "control"]}
    return MetricSource.members(statistic, column, MEMBER, TWIN, higher=RISK[column] > 0, where=where, options=options)


def _design_source(here: Mapping[str, object], name: str) -> MetricSource:
    if name in PER_CANARY:
        return MetricSource.mean(PER_CANARY[name], {**here, **MEMBER})
    where = {**here, "role": ["member", "document"]}
    if name == "MIA_Gap":
        return MetricSource.difference("mean_logprob", MEMBER, DOCUMENT, where=where)
    if name == "PPL_Ratio":
        return MetricSource("privacy.ppl_ratio", "mean_logprob", where)
    statistic = "auc" if name == "ROC_AUC" else "average_precision"
    return MetricSource.members(statistic, "mean_logprob", MEMBER, DOCUMENT, where=where)


def rows_for(sources: Iterable[MetricSource], rows: Iterable[Mapping[str, object]]) -> list[dict[str, Any]]:
    """The rows that some source reads, with the columns that tell them apart and those that any source reads."""
    wanted = list(sources)
    columns = {*IDENTITY, *(name for source in wanted for name in _columns(source))}
    return [
        {name: value for name, value in row.items() if name in columns}
        for row in rows
        if any(_matches(row, source.where) for source in wanted)
    ]


def _columns(source: MetricSource) -> set[str]:
    named = {source.column, *(term.column for term in source.terms)}
    return {name for name in named if name is not None}


def _matches(row: Mapping[str, object], where: Mapping[str, object]) -> bool:
    return all(
        row.get(name) in wanted if isinstance(wanted, list | tuple) else row.get(name) == wanted
        for name, wanted in where.items()
    )
