"""What a reader must know of the faithfulness audit's metrics."""

from __future__ import annotations

from lm_audit.audits.metric_info import ANY, AT_LEAST_0, SHARE, SIGNED
from lm_audit.audits.metric_info import MetricInfo as M

METRICS = (
    M("faithfulness.mas", "Deletion score (MAS)", "", "lower",
      "Area under the answer's probability while tokens are deleted in the order of the attribution, with a penalty "
      "where the attribution does not match the drop: lower is a truer explanation.", range=SHARE),
    M("faithfulness.rise", "Deletion score (RISE)", "", "lower",
      "Area under the answer's probability while tokens are deleted in the order of the attribution.", range=SHARE),
    M("faithfulness.rise_ap", "Deletion score (RISE with penalty)", "", "lower",
      "RISE with the alignment penalty added and not multiplied.", range=AT_LEAST_0),
    M("faithfulness.mas_normalised", "Deletion score between random and known order", "", "higher",
      "0 where the attribution is no better than a random order, 1 where it is as good as the known evidence.",
      range=ANY),
    M("faithfulness.recovery", "Known evidence among the top tokens", "", "higher",
      "Share of the known evidence that stands among the tokens of most weight.", range=SHARE),
    M("faithfulness.better_than_random", "Gain over random deletion", "", "higher",
      "Deletion score of random orders minus that of the attribution, on the same samples: above 0 it is better.",
      range=SIGNED),
    M("faithfulness.better_than_even", "Gain over even weights", "", "higher",
      "Deletion score of weights that are all alike minus that of the attribution, on the same samples: above 0 it is "
      "better.", range=SIGNED),
    M("faithfulness.degenerate_share", "Samples that deletion cannot judge", "share", "lower",
      "Share of samples whose answer does not become less likely even when everything is deleted."),
    M("faithfulness.mas.{method}", "Deletion score (MAS) of {method}", "", "lower",
      "Area under the answer's probability while tokens are deleted in the order of {method}: lower is truer.",
      range=SHARE),
    M("faithfulness.planted_found.{method}", "Planted tokens found by {method}", "share", "higher",
      "Control: share of samples in which {method} puts the tokens first that the model is built to copy."),
    M("faithfulness.randomised_correlation.{method}", "Ranking kept with random weights, {method}", "",
      "lower", "Control: rank correlation of {method} on the model and on one with its weights drawn anew.",
      range=SIGNED),
    *(
        entry
        for score, limits in (("rise", SHARE), ("mas", SHARE), ("{score}", ANY))
        for entry in (
            M(f"faithfulness.random_{score}", f"Random attribution, {score}", "", "lower",
              "Control: deletion score of random numbers as an attribution.", range=limits),
            M(f"faithfulness.chance_{score}", f"Random orders, {score}", "", "lower",
              "Control: deletion score of random orders, the chance level.", range=limits),
            M(f"faithfulness.planted_first_{score}", f"Planted tokens first, {score}", "", "lower",
              "Control: deletion score where the tokens that matter are deleted first, the best there is.",
              range=limits),
            M(f"faithfulness.planted_last_{score}", f"Planted tokens last, {score}", "", "higher",
              "Control: deletion score where the tokens that matter are deleted last, the worst there is.",
              range=limits),
        )
    ),
)  # fmt: skip
"""One entry a metric or family; see :class:`lm_audit.audits.metric_info.MetricInfo`."""
