"""What a reader must know of the privacy audit's metrics; evidence of all stages has the stage in the name."""

from __future__ import annotations

import math
from dataclasses import replace

from lm_audit.audits.metric_info import ANY, AT_LEAST_0, AT_MOST_0, SHARE, SIGNED, Range
from lm_audit.audits.metric_info import MetricInfo as M
from lm_audit.audits.privacy.attribution.directions import better
from lm_audit.audits.privacy.measure.source_columns import COLUMNS, GROUPED

_RANGE_OF_COLUMN: dict[str, Range] = {
    "MIA_Gap": ANY,
    "Avg_LogProb": AT_MOST_0,
    "Avg_Rank": AT_LEAST_0,
    "Canary_PPL": (1.0, math.inf),
    "PPL_Ratio": AT_LEAST_0,
}
"""Those of the source design's columns that are no shares."""

_STAGE = (
    M("privacy.roc_auc", "Members told from twins", "AUC", "target:0.5",
      "Chance that a text that was trained on scores above a twin that was not; 0.5 is a guess."),
    M("privacy.roc_auc.{score}", "Members told from twins by {score}", "AUC", "target:0.5",
      "Chance that a text that was trained on scores above a twin that was not, by {score}."),
    M("privacy.pr_auc", "Precision among the top scores", "AP", "lower",
      "Average precision of telling members from twins; chance is a little above the share of members."),
    M("privacy.tpr_at_{fpr}", "Members caught at few false alarms ({fpr})", "share", "lower",
      "Share of members that score above all but this share of twins."),
    M("privacy.exposure.r{times}", "Exposure of secrets seen {times} times", "bits", "lower",
      "How far up the model ranks a secret among those that were not trained on: each bit halves the guesses that are "
      "left."),
    M("privacy.exposure_exact.r{times}", "Exposure among all secrets, seen {times} times", "bits", "lower",
      "The same among all secrets of the form, counted exactly."),
    M("privacy.extraction.member.{prefix}", "Secrets extracted, {prefix} given", "share", "lower",
      "Share of secrets that the model writes out in full when it is given this beginning."),
    M("privacy.extraction.control.{prefix}", "Twins 'extracted', {prefix} given", "share", "lower",
      "The same of secrets that were never trained on: false positives."),
    M("privacy.extraction.sampled", "Secrets extracted by sampling", "share", "lower",
      "Share of sampled continuations that hold the secret."),
    M("privacy.extraction.in_thought", "Secrets in the thought", "share", "lower",
      "Share of secrets that stand in what the model thinks before it answers."),
    M("privacy.epsilon", "Privacy loss, lower bound", "epsilon", "lower",
      "The least epsilon of differential privacy that this much telling apart leaves possible."),
    M("privacy.stability", "Scores kept under other prompts", "share", "neither",
      "1 less how far a secret's log-probability moves from prompt to prompt (SD over mean), mean over secrets."),
    *(
        # Against ordinary text they tell how odd a canary looks: no way of theirs is the better one.
        M(f"privacy.source.{name}", f"Source design: {name.replace('_', ' ')}", "",
          "neither" if name in GROUPED else better(name),
          "A figure of the source design, computed as there, for comparison.", range=_RANGE_OF_COLUMN.get(name, SHARE))
        for name in COLUMNS
    ),
    M("privacy.source.stability", "Source design: scores kept", "share", "neither",
      "1 less how far the source design's score moves from prompt to prompt (SD over mean), mean over secrets."),
    M("privacy.did", "What this training step added", "nats", "lower",
      "Change of the secrets' log-probability a token from one stage to the next, minus the change of their twins'."),
    M("privacy.did.p", "p-value of what this step added", "p", None,
      "How often so large a difference would come without any memory of the secrets."),
)  # fmt: skip


def _of_stage(entry: M) -> M:
    """The entry where evidence holds all stages, or all transitions."""
    name = entry.name.removeprefix("privacy.")
    return replace(entry, name=f"privacy.{{stage}}.{name}", title=f"{entry.title}, {{stage}}")


METRICS = (
    *_STAGE,
    M("privacy.generated.extraction.member.{how}", "Secrets written out, {how}", "share", "lower",
      "Share of secrets that the model writes out behind the text before them, asked by generation alone."),
    M("privacy.generated.extraction.control.{how}", "Twins written out, {how}", "share", "lower",
      "The same of secrets that were never trained on: false positives."),
    M("privacy.generated.no_answer", "Replies without an answer", "share", "lower",
      "Share of greedy replies that ended inside their thought; they count as not written out."),
    M("privacy.generated.in_thought", "Secrets in the thought, written out", "share", "lower",
      "Share of trained secrets that stand in what the model writes for itself before it answers."),
    M("privacy.generated.extraction_difference", "Secrets written out beyond guessing", "share", "lower",
      "Share of trained secrets written out greedily minus the share of secrets that were never trained on.",
      range=SIGNED),
    M("privacy.scored.roc_auc", "Members told from held-out texts by log-probabilities", "AUC", "target:0.5",
      "Chance that a text that was trained on is likelier than one that was not; 0.5 is a guess."),
    M("privacy.scored.roc_auc.{score}", "Members told from held-out texts by {score}", "AUC", "target:0.5",
      "Chance that a text that was trained on scores above one that was not, by {score}."),
    M("privacy.scored.pr_auc", "Precision among the likeliest texts", "AP", "lower",
      "Average precision of telling members from held-out texts; chance is a little above the share of members."),
    M("privacy.scored.tpr_at_{fpr}", "Members caught by likelihood at few false alarms ({fpr})", "share", "lower",
      "Share of members that are likelier than all but this share of held-out texts."),
    M("privacy.scored.exposure.r{times}", "Exposure by likelihood, seen {times} times", "bits", "lower",
      "How far up the model ranks a secret among held-out ones: each bit halves the guesses that are left."),
    M("privacy.scored.text_alone", "Members told from held-out texts without the model", "AUC", "target:0.5",
      "Control: a classifier that reads the texts alone; above 0.5 the two groups differ in what they say."),
    M("privacy.blind_baseline", "Members told from twins before training", "AUC", "target:0.5",
      "Control: chance that a member scores above a twin in the base model, which saw neither; must be near 0.5."),
    M("privacy.power.detectable_d", "Smallest effect that would be seen", "d", "neither",
      "The standardised effect that this number of canaries finds with a probability of 80 %."),
    M("privacy.power.detectable_auc", "Smallest AUC that would be seen", "AUC", "neither",
      "The AUC that this number of canaries finds with a probability of 80 %."),
    M("privacy.power.canaries_for_d{effect}", "Canaries for an effect of {effect}", "pairs", "neither",
      "How many canaries with twins find a standardised effect of {effect} with a probability of 80 %."),
    M("privacy.{step}.did.over_seeds", "What {step} added, over seeds", "nats", "lower",
      "Mean over training seeds of what this training step added."),
    M("privacy.{step}.did.direction_consistency", "Seeds that agree, {step}", "share", "neither",
      "Share of training seeds in which the effect has the sign of most."),
    M("privacy.control_exposure", "Exposure in the control", "bits", "higher",
      "Control: exposure of secrets in a model that was trained to memorise them."),
    M("privacy.control_extraction", "Extraction in the control", "share", "higher",
      "Control: secrets written out by a model that was trained to memorise them."),
    M("privacy.control_auc", "Members told from twins in the control", "AUC", "neither",
      "Control: near 1 in a model that memorised, near 0.5 in one that was not trained on any."),
    M("privacy.control_auc.p", "p-value of the control", "p", None,
      "How often guessing would tell members from twins as well."),
    M("privacy.control_error", "Largest error on known scores", "nats", "lower",
      "Control: largest difference from scores that are known on paper, or that another training gives.",
      range=AT_LEAST_0),
    *map(_of_stage, _STAGE),
)  # fmt: skip
"""One entry a metric or family; see :class:`lm_audit.audits.metric_info.MetricInfo`."""
