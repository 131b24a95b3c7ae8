"""Which design stands for a metric: its own, one of the same rows and function, or none for want of an interval."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

WITHOUT: Mapping[str, str] = {
    r".*\.(p|p_sign_flip|p_\{test\})": "a p-value",
    r"bias\.(max_min_p|max_min_permutation_p|holm_p|sign_flip_holm_p|equivalence_p)(\..*)?": "a p-value",
    r"bias\.probe(_mean|_range|\.\{group\})": "one template and one word pair: a demonstration",
    r".*\.detectable(_d|_auc)?|privacy\.power\..*": "a figure of the design",
    r"privacy\.(\{stage\}\.)?source\..*": "a figure of the source design, as it computes it",
    r".*mitigation_share": "a share of means",
    r"leakage\.(benchmarks_found|text\.perplexity)|needle\.samples_spent": "a count, or of all tokens together",
    r".*direction_consistency": "a count of seeds beside its exact test",
    r"leakage\.row_order\.gain": "four shards: no verdict rests on it",
    r"privacy\.control_error|bias\.control_agreement": "a control's own measure of agreement",
}
"""Metrics that have no interval, or none that anything is concluded from, by patterns of their names."""

SAME: Mapping[str, str] = {
    r"bias\.max_min_disparity\.\{axis\}": "bias.max_min_disparity",
    r"bias\.bbq_generated_no_answer": "bias.bbq_unparsed",
    r"bias\.bbq_(generated_)?(\w+?)(\.category\.\{category\}|\.names_only)?": r"bias.bbq_\2",
    r"bias\.crows_pct_stereotype.*": "bias.crows_pct_stereotype",
    r"bias\.stereoset_(ss|icat)(_suffix|\.type\.\{type\})": r"bias.stereoset_\1",
    r"bias\.wino(bias_bias|bias_bias\{form\}|gender_gotcha_gap|gender_gotcha_gap\.\{rule\})":
        "bias.winogender_male_female_gap",
    r"bias\.winobias_accuracy_\{part\}": "bias.winogender_accuracy_{gender}",
    r"bias\.winogender_(\w+)\.\{rule\}": r"bias.winogender_\1",
    r"bias\.control_contrast": "bias.contrast.{groups}",
    r"faithfulness\.(random|chance|planted_first|planted_last)_(rise|mas|\{score\})": "faithfulness.random_{score}",
    r"leakage\.order_effect(_unsorted)?\.(logprob|hits|\{measure\})": "leakage.order_effect.{measure}",
    r"leakage\.above_\{baseline\}\.hits|leakage\.mitigation": "leakage.above_{baseline}.{measure}",
    r"leakage\.completion\.\{measure\}\.above_baseline": "leakage.above_{baseline}.{measure}",
    r"leakage\.(completion\.\{measure\}\.above_baseline|option_order(_unsorted)?\.place"
    r"|order_effect_unsorted\.\{measure\})\.these_files":
        "leakage.order_effect.{measure}.these_files",
    r"leakage\.order_effect_unsorted\.\{measure\}\.largest_file": "leakage.order_effect.{measure}.largest_file",
    r"leakage\.completion\.\{measure\}\.baseline": "leakage.completion.{measure}",
    r"leakage\.hits\.original": "leakage.hits.{condition}",
    r"leakage\.logprob\.original": "leakage.logprob.{condition}",
    r"leakage\.text\.(mean_logprob|min_k20)": "leakage.text.{measure}",
    r"leakage\.option_order_unsorted\.(place|first)": r"leakage.option_order.\1",
    r"leakage\.published\.\{score\}": "leakage.published.score",
    r"leakage\.control\.order_effect": "leakage.order_effect.{measure}",
    r"needle\.(chance_rate|control_accuracy|\{score\})": "needle.accuracy",
    r"privacy\.\{stage\}\.(.*)": r"privacy.\1",
    r"privacy\.scored\.(roc_auc|roc_auc\.\{score\}|text_alone)|privacy\.control_auc": "privacy.roc_auc",
    r"privacy\.scored\.(pr_auc|tpr_at_\{fpr\}|exposure\.r\{times\})": r"privacy.\1",
    r"privacy\.(generated\.)?(extraction\.control\.\{\w+\}|no_answer|in_thought)|privacy\.extraction\.in_thought":
        "privacy.extraction.member.{prefix}",
    r"privacy\.control_extraction": "privacy.extraction.member.{prefix}",
    r"privacy\.control_exposure": "privacy.exposure.r{times}",
    r"privacy\.generated\.extraction\.(member|control)\.\{how\}": "privacy.extraction.member.{prefix}",
}  # fmt: skip
"""Metrics of the same function and kind of rows as another, by patterns of their names."""


def stands_for(name: str, simulated: Iterable[str]) -> str | None:
    """The simulated metric that tells of ``name``, or why there is none to tell of; ``None`` where neither is known."""
    known = set(simulated)
    for _ in range(4):
        if name in known:
            return name
        reason = next((why for pattern, why in WITHOUT.items() if re.fullmatch(pattern, name)), None)
        if reason is not None:
            return reason
        matches = ((re.fullmatch(pattern, name), to) for pattern, to in SAME.items())
        other = next((match.expand(to) for match, to in matches if match is not None), None)
        if other is None:
            return None
        name = other
    return None


def named(label: str) -> set[str]:
    """The metrics that a label of a design names: several after commas, what tells designs apart in brackets."""
    return {part.split(" (")[0] for part in label.split(", ")}
