"""What a reader must know of the leakage audit's metrics."""

from __future__ import annotations

from lm_audit.audits.metric_info import ANY, AT_LEAST_0, AT_MOST_0, SHARE, SIGNED
from lm_audit.audits.metric_info import MetricInfo as M

_P = "How often a model that never saw the questions would give as much."

METRICS = (
    M("leakage.order_effect.logprob", "Preference for the printed order", "nats a byte", "lower",
      "Log-probability of the rest of each option in the order in which the benchmark prints them, minus the same in "
      "shuffled orders: above 0 the model knows the printed order."),
    M("leakage.order_effect.hits", "Options completed thanks to the printed order", "share of options", "lower",
      "Share of options completed word for word in the printed order minus the share in shuffled orders.",
      range=SIGNED),
    M("leakage.order_effect_unsorted.{measure}.these_files",
      "Preference for the printed order, unsorted options, {measure}, this benchmark", "", "lower",
      "The same mean, its interval for this benchmark's own files.", range=ANY),
    M("leakage.order_effect.{measure}.these_files", "Preference for the printed order, {measure}, this benchmark", "",
      "lower", "The same mean, its interval for this benchmark's own files; over 6 files and more the other one is for "
      "files like them. The verdict rests on this one.", range=ANY),
    *(
        M(f"leakage.order_effect_unsorted.{measure}", "Preference for the printed order, unsorted options", "", "lower",
          "The same on the questions whose options do not stand in a natural order such as by size.", range=limits)
        for measure, limits in (("hits", SIGNED), ("{measure}", ANY))
    ),
    *(
        M(f"leakage.{kind}.{{measure}}.largest_file", f"Preference for the printed order, {{measure}}, {what}", "",
          "lower", "The largest of the means of single files that have questions enough; the interval holds whichever "
          "file is the largest in truth.", range=ANY)
        for kind, what in (("order_effect", "one file"), ("order_effect_unsorted", "one file, unsorted options"))
    ),
    M("leakage.order_effect.{measure}.p", "p-value of the order effect, {measure}", "p", None, _P),
    M("leakage.order_effect_unsorted.{measure}.p", "p-value of the order effect, unsorted, {measure}", "p", None, _P),
    M("leakage.order_effect.{measure}.p_sign_flip", "p-value of the order effect, {measure}, sign flips", "p",
      None, _P),
    M("leakage.order_effect_unsorted.{measure}.p_sign_flip", "p-value of the order effect, unsorted, sign flips", "p",
      None, _P),
    M("leakage.order_effect.{measure}.detectable", "Smallest order effect that would be seen, {measure}", "", "neither",
      "The effect that this number of questions finds with a probability of 80 %.", range=AT_LEAST_0),
    M("leakage.order_effect_unsorted.{measure}.detectable", "Smallest order effect that would be seen, unsorted", "",
      "neither", "The effect that this number of questions finds with a probability of 80 %.", range=AT_LEAST_0),
    M("leakage.hits.original", "Options completed word for word", "share of options", "lower",
      "Share of options whose second half the model writes exactly, given the question in its printed form."),
    M("leakage.hits.{condition}", "Options completed word for word, {condition}", "share of options", "neither",
      "The same under the condition {condition}, for comparison."),
    M("leakage.logprob.original", "Log-probability of the options' rest", "nats a byte", "lower",
      "Log-probability of the second half of each option, given the question in its printed form.", range=AT_MOST_0),
    M("leakage.logprob.{condition}", "Log-probability of the options' rest, {condition}", "nats a byte", "neither",
      "The same under the condition {condition}, for comparison.", range=AT_MOST_0),
    M("leakage.above_{baseline}.{measure}.p", "p-value above {baseline}, {measure}", "p", None, _P),
    *(
        M(f"leakage.above_{{baseline}}.{measure}", f"Gain over {{baseline}}, {measure}", "", "lower",
          "What the question in its printed form gives beyond the baseline {baseline}; language alone gives some.",
          range=limits)
        for measure, limits in (("hits", SIGNED), ("{measure}", ANY))
    ),
    M("leakage.mitigation", "Hits lost by shuffling", "share of options", "lower",
      "Share of options completed in the printed order minus that in shuffled orders.", range=SIGNED),
    M("leakage.mitigation_share", "Share of hits lost by shuffling", "share", "lower",
      "The hits lost by shuffling as a share of those beyond what language alone gives; above 1 where shuffled options "
      "are hit less often than that.", range=ANY),
    M("leakage.published.mitigation.p", "p-value of the published test", "p", None, _P),
    M("leakage.published.mitigation", "Published test: hits lost by shuffling", "hits a question", "lower",
      "Hits a question in the printed order minus those in a shuffled one, as published.", range=ANY),
    M("leakage.published.mitigation_share", "Published test: share of hits lost", "share", "lower",
      "The hits lost by shuffling as a share of those beyond what language alone gives.", range=ANY),
    M("leakage.published.score", "Published test: hits a question", "hits a question", "lower",
      "Options completed word for word, a question, mean over files, as published; read it beside its baseline.",
      range=AT_LEAST_0),
    M("leakage.published.score_by_items", "Published test: hits a question, over questions", "hits a question",
      "lower", "The same as a mean over questions.", range=AT_LEAST_0),
    M("leakage.published.{score}", "Published test: {score}", "hits a question", "neither",
      "Hits a question under another condition, for comparison.", range=AT_LEAST_0),
    M("leakage.benchmarks_found", "Benchmarks with an order effect", "benchmarks", "lower",
      "How many benchmarks show a preference for the printed order, corrected for their number."),
    M("leakage.option_order.place", "Place of the printed order among all orders", "share of other orders", "lower",
      "Share of other orders of the options that are less likely than the printed one; 0.5 by chance."),
    M("leakage.option_order_unsorted.place.these_files", "Place of the printed order, unsorted options, this benchmark",
      "share of other orders", "lower", "The same mean, its interval for this benchmark's own files."),
    M("leakage.option_order.place.these_files", "Place of the printed order, this benchmark", "share of other orders",
      "lower", "The same mean, its interval for this benchmark's own files. The verdict rests on it."),
    M("leakage.option_order.first", "Printed order is the likeliest", "share of items", "lower",
      "Share of questions whose printed order is the likeliest of all orders."),
    M("leakage.option_order_unsorted.place", "Place of the printed order, unsorted options", "share of other orders",
      "lower", "The same on the questions whose options do not stand in a natural order."),
    M("leakage.option_order_unsorted.first", "Printed order is the likeliest, unsorted options", "share of items",
      "lower", "The same on the questions whose options do not stand in a natural order."),
    M("leakage.{test}.first.p", "p-value of the likeliest order, {test}", "p", None, _P),
    M("leakage.completion.{measure}.above_baseline.p", "p-value of completion, {measure}", "p", None, _P),
    M("leakage.completion.{measure}.above_baseline", "Completion beyond the baseline, {measure}", "", "lower",
      "What the model writes of the second half of an option, beyond what it writes without the question.",
      range=SIGNED),
    M("leakage.completion.{measure}.above_baseline.these_files",
      "Completion beyond the baseline, {measure}, this benchmark", "", "lower",
      "The same mean, its interval for this benchmark's own files. The verdict rests on it.", range=SIGNED),
    M("leakage.completion.{measure}.baseline", "Completion without the question, {measure}", "", "neither",
      "What the model writes of the second half of an option without its question.", range=SHARE),
    M("leakage.completion.{measure}", "Completion of options, {measure}", "", "lower",
      "How much of the second half of each option the model writes, given the question and the first half.",
      range=SHARE),
    M("leakage.ngram_accuracy", "Words of the benchmark written out", "share of places", "lower",
      "Share of places in the questions at which the model continues with the very words of the benchmark."),
    M("leakage.text.{measure}.auc", "Benchmark told from clean text by {measure}", "AUC", "lower",
      "Chance that a question of the benchmark scores above one of the clean set; 0.5 is no difference."),
    M("leakage.text.{measure}.p", "p-value against clean text, {measure}", "p", None, _P),
    M("leakage.text.perplexity", "Perplexity of the benchmark", "perplexity", "neither",
      "How surprised the model is by the text of the benchmark; says nothing without clean text to compare with."),
    *(
        M(f"leakage.text.{measure}", f"Likelihood of the benchmark, {measure.replace('_', ' ')}", "", "neither",
          "How likely the text of the benchmark is; says nothing without clean text to compare with.", range=limits)
        for measure, limits in (("mean_logprob", AT_MOST_0), ("min_k20", AT_MOST_0), ("{measure}", ANY))
    ),
    M("leakage.row_order.swap_gain.p", "p-value of neighbouring rows", "p", None, _P),
    M("leakage.row_order.swap_gain", "Neighbours in the file's order", "nats a pair", "lower",
      "Log-likelihood of two neighbouring rows in the order of the file minus that in reverse."),
    M("leakage.row_order.gain", "File in its own order", "nats", "lower",
      "Log-likelihood of a stretch of rows in the order of the file minus that in shuffled orders."),
    M("leakage.row_order.p_{test}", "p-value of the file's order ({test})", "p", None, _P),
    M("leakage.control.order_effect", "Order effect of the control", "nats a byte", "lower",
      "Control: preference for the printed order on questions that the toy was trained on, or never saw."),
    M("leakage.control.order_effect.p", "p-value of the control", "p", None, _P),
)  # fmt: skip
"""One entry a metric or family; see :class:`lm_audit.audits.metric_info.MetricInfo`."""
