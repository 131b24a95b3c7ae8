"""What a reader must know of the needle audit's metrics."""

from __future__ import annotations

from lm_audit.audits.metric_info import AT_MOST_0
from lm_audit.audits.metric_info import MetricInfo as M

METRICS = (
    M("needle.accuracy", "Needles found", "share", "higher",
      "Share of prompts whose answer holds what was hidden in them, by the scorer that was chosen."),
    M("needle.accuracy.L{length}", "Needles found at {length} tokens", "share", "higher",
      "Share of prompts of this length whose answer holds what was hidden in them."),
    M("needle.cliff", "Length up to which needles are found", "tokens", "higher",
      "The longest prompt at which, and at every shorter one, the share found is shown to be above the threshold."),
    M("needle.all", "All values found", "share", "higher", "Share of the values asked for that the answer holds."),
    M("needle.any", "Any value found", "share", "higher",
      "Share of prompts whose answer holds at least one of the values asked for."),
    M("needle.boundary", "Found as whole words", "share", "higher",
      "Share of the values that the answer holds as whole words."),
    M("needle.precision", "Values given that were hidden", "share", "higher",
      "Of the values that the answer gives, the share that was hidden in the prompt."),
    M("needle.value_greedy", "Value is what the model would write", "share", "higher",
      "Share of prompts at which every token of the value is the likeliest next one."),
    M("needle.value_logprob", "Log-probability of the value", "nats", "higher",
      "Log-probability of the hidden value as the answer, mean over prompts.", range=AT_MOST_0),
    M("needle.cut_answers", "Answers cut off", "share", "lower", "Share of answers that reached the limit of tokens."),
    M("needle.empty_answers", "Empty answers", "share", "lower", "Share of prompts with no text in the answer."),
    M("needle.no_answer", "Thoughts without an answer", "share", "lower",
      "Share of replies that ended inside their thought."),
    M("needle.samples_spent", "Samples that were needed", "share", "lower",
      "Samples asked by the adaptive search, of those that the full grid has."),
    M("needle.chance_rate", "Found without a needle", "share", "lower",
      "Control: share of answers that hold a value which the prompt does not."),
    M("needle.control_accuracy", "Found by an answerer that must", "share", "higher",
      "Control: share found by an answerer that is built to read the needle."),
)  # fmt: skip
"""One entry a metric or family; see :class:`lm_audit.audits.metric_info.MetricInfo`."""
