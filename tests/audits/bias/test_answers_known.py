"""What the bias audit reports of answers, broken on purpose: answers that are known beforehand must tell."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lm_audit.audits.bias import answers_known
from lm_audit.audits.bias.answers_known import wrong_of_known_answers
from lm_audit.audits.bias.benchmarks import shares
from lm_audit.audits.bias.benchmarks.bbq import audit as bbq
from lm_audit.audits.bias.benchmarks.bbq import items as bbq_items
from lm_audit.audits.bias.benchmarks.bbq import scores as bbq_scores
from lm_audit.audits.bias.benchmarks.bbq import written
from lm_audit.audits.bias.benchmarks.crows_pairs import audit as crows_audit
from lm_audit.audits.bias.benchmarks.crows_pairs import items as crows_items
from lm_audit.audits.bias.benchmarks.stereoset import audit as stereoset_audit
from lm_audit.audits.bias.benchmarks.stereoset import scores as stereoset
from lm_audit.audits.bias.benchmarks.wino import answered, winobias_items, winogender
from lm_audit.audits.bias.generated import continuations, counterfactual, refusal, refusal_shares, refusal_words
from lm_audit.audits.second_opinion import found_wrong
from tests.audits.reporting_faults import REPORTING

Patch = pytest.MonkeyPatch
Fault = Callable[[Patch], None]


def _put(module: Any, name: str, fault: Callable[..., Any]) -> Fault:
    """``fault(honest, ...)`` in place of a function, where its module uses it."""

    def apply(patch: Patch) -> None:
        honest = getattr(module, name)
        patch.setattr(module, name, lambda *words, **options: fault(honest, *words, **options))

    return apply


def _without_clusters(honest: Callable[..., Any], values: Any, clusters: Any, **options: Any) -> Any:
    return honest(values, range(len(clusters)), **options)


def _words(module: Any, name: str, first: str, second: str) -> Fault:
    """A table of words in which two meanings are exchanged."""

    def apply(patch: Patch) -> None:
        turned = {first: second, second: first}
        patch.setattr(module, name, {word: turned.get(found, found) for word, found in getattr(module, name).items()})

    return apply


def _of_scores(**changes: Callable[[Any], Any]) -> Fault:
    """BBQ's scores with some of them put through a change."""

    def fault(honest: Callable[..., Any], *words: Any) -> Any:
        found = honest(*words)
        return replace(found, **{name: change(found) for name, change in changes.items()})

    return _put(bbq, "bbq_scores", fault)


def _gap_turned(honest: Callable[..., Any], right: Any, first: Any, clusters: Any, **fields: Any) -> Any:
    return honest(right, ~first, clusters, **fields)


def _alone(honest: Callable[..., Any], values: Any, clusters: Any = None, **options: Any) -> Any:
    """Clusters are ignored."""
    return honest(values, list(range(np.size(values))), **options)


def _of_lean(change: Callable[[Any], Any]) -> Fault:
    return _put(refusal, "_lean", lambda honest, *words: change(honest(*words)))


def _rates_by_other_groups(honest: Callable[..., Any], evidence: Any, table: Any, **options: Any) -> Any:
    names = list(table.groups)
    return honest(evidence, replace(table, groups=[*names[1:], names[0]]), **options)


def _icat(change: Callable[[Any, Any], tuple[Any, Any]]) -> Fault:
    return _put(stereoset_audit, "_icat", lambda honest, ss, lms: honest(*change(ss, lms)))


def _at_limits(found: Any, ss: Any, lms: Any) -> Any:
    """The largest ICAT where one of the limits of SS is the truth, though 50 lies between them."""
    return replace(found, high=max(stereoset.icat(end, lms.high) for end in (ss.low, ss.high)))


def _written(change: Callable[[Any], Any]) -> Fault:
    """The bias in ambiguous contexts of written answers alone put through a change."""

    def fault(honest: Callable[..., Any], *words: Any, **options: Any) -> Any:
        found = honest(*words, **options)
        name = "bias.bbq_generated_bias_ambig"
        found.metrics[name] = change(found.metrics[name])
        return found

    return _put(written, "bbq_evidence", fault)


def _wide(found: Any, times: float) -> Any:
    return replace(found, **{end: found.value + times * (getattr(found, end) - found.value) for end in ("low", "high")})


def _refusals(said: Callable[[bool], bool]) -> Fault:
    def apply(patch: Patch) -> None:
        honest = refusal_words.is_refusal
        patch.setattr(refusal_words, "is_refusal", lambda *words: said(honest(*words)))

    return apply


def _excess(change: Callable[[Any, Any], tuple[Any, Any]]) -> Fault:
    return _put(
        counterfactual,
        "studentised_difference",
        lambda honest, first, second, **options: honest(*change(first, second), **options),
    )


def _replies(name: str, change: Callable[[list[Any]], list[Any]]) -> Fault:
    """What the model writes for all prompts, put through ``change``."""

    def fault(honest: Callable[..., Any], model: Any, *words: Any) -> Any:
        turned = SimpleNamespace(**vars(model))
        turned.generate = lambda prompts, **options: change(list(model.generate(prompts, **options)))
        return honest(turned, *words)

    return _put(answers_known, name, fault)


def _written_excess(change: Callable[[Any, Any], tuple[Any, Any]]) -> Fault:
    return _put(
        continuations,
        "studentised_difference",
        lambda honest, first, second, **options: honest(*change(first, second), **options),
    )


def _table(change: Callable[[Any], Any]) -> Fault:
    """What was refused (requests, groups, draws) put through a change before rates are made of it."""

    def fault(honest: Callable[..., Any], evidence: Any, table: Any, **options: Any) -> Any:
        return honest(evidence, replace(table, refused=change(table.refused)), **options)

    return _put(refusal, "record_rates", fault)


def _said_of_the_other(honest: Callable[..., Any], evidence: Any, tests: Any, *place: Any) -> Any:
    """The group that is refused less is said to be refused more."""
    found = honest(evidence, tests, *place)
    return [
        replace(one, found=one.found.replace(a, "\0").replace(b, a).replace("\0", b))
        for one, (a, b, _) in zip(found, tests, strict=True)
    ]


WRITTEN: dict[str, Fault] = {
    "written BBQ: letters of the published order": _put(
        written, "choice_of", lambda honest, reply, item, order: honest(reply, item, (0, 1, 2))
    ),
    "written BBQ: letters counted from the end": _put(
        written, "choice_of", lambda honest, reply, item, order: honest(reply, item, order[::-1])
    ),
    "written BBQ: the first of several letters": lambda patch: patch.setattr(written, "_SEVERAL", re.compile("(?!)")),
    "written BBQ: no letter is unknown": _put(
        written,
        "choice_of",
        lambda honest, reply, item, order: item.unknown if (c := honest(reply, item, order)) is None else c,
    ),
    "written BBQ: replies of the order before": _replies("bbq_generated", lambda found: [found[-1], *found[:-1]]),
    "written BBQ: one reply for all": _replies("bbq_generated", lambda found: [found[0]] * len(found)),
    "written BBQ: thoughts are answers": _put(
        written,
        "_record_unanswered",
        lambda honest, evidence, items, replies, confidence: honest(
            evidence, items, [SimpleNamespace(answer="", thought=None) for _ in replies], confidence
        ),
    ),
    "continuations: the words in common": _put(continuations, "changed", lambda honest, *words: 1 - honest(*words)),
    "continuations: the gender is a change": _put(continuations, "_swapped", lambda honest, text: text),
    "continuations: of characters": _put(
        continuations, "_apart", lambda honest, one, other: honest(" ".join(one), " ".join(other))
    ),
    "continuations: constant": _put(continuations, "changed", lambda honest, *words: 0.5),
    "continuations: of the prompt before": _replies(
        "counterfactual_continuations", lambda found: [found[-1], *found[:-1]]
    ),
    "continuations: one for all": _replies("counterfactual_continuations", lambda found: [found[0]] * len(found)),
    "continuations: what is missing has changed": _put(
        continuations, "_changed", lambda honest, *pair: 1.0 if None in pair else honest(*pair)
    ),
    "continuations: sides exchanged": _written_excess(lambda first, second: (second, first)),
    "continuations: floor not taken off": _written_excess(lambda first, second: (first, second - second.mean())),
    "continuations: every value twice": _written_excess(lambda first, second: (np.tile(first, 4), np.tile(second, 4))),
}
"""Of what a model writes."""

FAULTS: dict[str, Fault] = {
    **WRITTEN,
    **REPORTING,
    "BBQ: contexts exchanged": _words(bbq_items, "_CONDITION", "ambig", "disambig"),
    "BBQ: questions exchanged": _words(bbq_items, "_POLARITY", "neg", "nonneg"),
    "BBQ: polarity ignored": _put(bbq_items, "_by_polarity", lambda honest, stereotyped, *_: stereotyped),
    "BBQ: the other one is the target": _put(
        bbq_items,
        "_by_polarity",
        lambda honest, found, unknown, polarity: 3 - unknown - honest(found, unknown, polarity),
    ),
    "BBQ: bias without (1 - accuracy)": _of_scores(
        bias_ambig=lambda found: found.bias_ambig / (1 - found.accuracy_ambig)
    ),
    "BBQ: bias of the other sign": _of_scores(bias_disambig=lambda found: -found.bias_disambig),
    "BBQ: a share in the place of the bias": _of_scores(bias_disambig=lambda found: (found.bias_disambig + 1) / 2),
    "BBQ: gap turned round": _of_scores(accuracy_gap=lambda found: -found.accuracy_gap),
    "BBQ: accuracies exchanged": _of_scores(
        accuracy_ambig=lambda found: found.accuracy_disambig, accuracy_disambig=lambda found: found.accuracy_ambig
    ),
    "BBQ: declining names somebody": _put(
        bbq_scores,
        "_lean",
        lambda honest, pairs: float(2 * np.mean([c == i.target for i, given in pairs for c in given]) - 1),
    ),
    "BBQ: clusters ignored": _put(bbq, "share", _alone),
    "StereoSet: columns exchanged": _put(
        answers_known, "stereoset_scores", lambda honest, table, targets: honest(np.array(table)[:, [1, 0, 2]], targets)
    ),
    "StereoSet: noise in the place of the other one": _put(
        answers_known, "stereoset_scores", lambda honest, table, targets: honest(np.array(table)[:, [0, 2, 1]], targets)
    ),
    "StereoSet: of equals the first wins": _put(stereoset, "_beats", lambda honest, one, other: 1.0 * (one >= other)),
    "StereoSet: icat of the share alone": _put(stereoset, "icat", lambda honest, ss, lms: lms * ss / 100),
    "StereoSet: terms ignored": _put(
        answers_known,
        "stereoset_scores",
        lambda honest, table, targets: honest(table, [str(k) for k in range(len(targets))]),
    ),
    "WinoBias: conditions exchanged": _put(
        winobias_items,
        "_one_of",
        lambda honest, row, field, known: {"pro": "anti", "anti": "pro"}.get(found := honest(row, field, known), found),
    ),
    "WinoBias: genders exchanged": _words(winobias_items, "_PRONOUNS", "male", "female"),
    "gaps turned round": _put(answered, "gap", _gap_turned),
    "the first candidate is always right": _put(
        answered, "correct", lambda honest, scores, questions: (scores[:, 0] > scores[:, 1]).astype(float)
    ),
    "a tie is wrong": _put(answered, "correct", lambda honest, *words: np.floor(honest(*words))),
    "clusters of a share dropped": _put(answered, "clustered_mean", _without_clusters),
    "clusters of a gap dropped": _put(
        answered, "gap", lambda honest, right, first, of, **o: honest(right, first, range(len(right)), **o)
    ),
    "CrowS-Pairs: a tie is no preference": _put(
        crows_audit, "preference_share", lambda honest, pairs: np.floor(honest(pairs) / 100) * 100
    ),
    "CrowS-Pairs: a tie is left out": _put(
        crows_audit, "preference_share", lambda honest, pairs: np.where((found := honest(pairs)) == 50, np.nan, found)
    ),
    "CrowS-Pairs: writers dropped": _put(crows_audit, "clustered_mean", _without_clusters),
    "CrowS-Pairs: clean is what is not": _put(
        crows_items, "_defects", lambda honest, *pair: [] if honest(*pair) else ["unequal word counts"]
    ),
    "CrowS-Pairs: directions exchanged": _words(crows_items, "_DIRECTIONS", "stereo", "antistereo"),
    "CrowS-Pairs: sums for means": _put(
        crows_audit, "_pair_score", lambda honest, *pair: replace(found := honest(*pair), mean=found.total)
    ),
    "answers reversed": _put(answered, "correct", lambda honest, *words: 1 - honest(*words)),
    "a scale of 1": _put(
        answered, "clustered_mean", lambda honest, values, *words, **o: honest(values / 100, *words, **o)
    ),
    "scores of candidates exchanged": _put(
        answered, "candidate_scores", lambda honest, *words: {k: v[:, ::-1] for k, v in honest(*words).items()}
    ),
    "scores of the question before": _put(
        answered,
        "candidate_scores",
        lambda honest, *words: {k: np.roll(v, 1, axis=0) for k, v in honest(*words).items()},
    ),
    "Winogender: flips are what does not flip": _put(
        winogender, "_flips", lambda honest, *words: [(name, 1 - flip) for name, flip in honest(*words)]
    ),
    "Winogender: what is expected is not": _put(winogender, "_is_gotcha", lambda honest, *words: not honest(*words)),
    "Winogender: correlation reversed": _put(
        winogender, "_correlation", lambda honest, left, right, confidence: honest(-left, right, confidence)
    ),
    "Winogender: correlation of ranks": _put(
        winogender,
        "_correlation",
        lambda honest, left, right, confidence: honest(left.argsort().argsort(), right.argsort().argsort(), confidence),
    ),
    "Winogender: interval at 50 %": _put(
        winogender, "_correlation", lambda honest, left, right, confidence: honest(left, right, 0.5)
    ),
    "refusals: always": _refusals(lambda said: True),
    "refusals: never": _refusals(lambda said: False),
    "refusals: reversed": _refusals(lambda said: not said),
    "refusals: groups renamed": _put(refusal, "record_rates", _rates_by_other_groups),
    "refusals: two groups for one": _put(
        refusal_shares, "combinations", lambda honest, groups, n: [(0, 1), (0, 1), (1, 2)]
    ),
    "refusals: differences turned round": _put(
        refusal_shares,
        "_difference",
        lambda honest, table, one, other, confidence: honest(table, other, one, confidence),
    ),
    "refusals: limits of one difference for all": _put(
        refusal_shares, "_difference", lambda honest, *words: honest(*words[:3], min(words[3], 0.8))
    ),
    "refusals: chance of no groups": _put(refusal_shares, "_chance", lambda honest, *words: 0.0),
    "refusals: chance of the largest difference lost": _put(refusal_shares, "_chance", lambda honest, *words: None),
    "drawn: answers of a request added up": _put(
        refusal_shares, "_by_request", lambda honest, table: np.nansum(table.refused, axis=2)
    ),
    "drawn: a request is refused where one reply is": _put(
        refusal_shares, "_by_request", lambda honest, table: np.nanmax(table.refused, axis=2)
    ),
    "drawn: the first reply for all": _table(lambda refused: np.repeat(refused[:, :, :1], refused.shape[2], axis=2)),
    "drawn: what is missing is a refusal": _table(lambda refused: np.nan_to_num(refused, nan=1.0)),
    "drawn: what is missing is an answer": _table(lambda refused: np.nan_to_num(refused, nan=0.0)),
    "drawn: p of a test for one side": _put(
        refusal_shares, "_test", lambda honest, *words: None if (p := honest(*words)) is None else p / 2
    ),
    "drawn: the other group is refused more": _put(refusal, "refusal_findings", _said_of_the_other),
    "leans reversed": _of_lean(lambda lean: -lean),
    "leans shifted by one": _of_lean(lambda lean: np.roll(lean, 1)),
    "leans halved": _of_lean(lambda lean: lean / 2),
    "swaps: floor not taken off": _excess(lambda first, second: (first, second - second.mean())),
    "swaps: sides exchanged": _excess(lambda first, second: (second, first)),
    "swaps: every value twice": _excess(lambda first, second: (np.tile(first, 4), np.tile(second, 4))),
    "StereoSet: ICAT's interval at SS's value": _icat(lambda ss, lms: (replace(ss, low=ss.value, high=ss.value), lms)),
    "StereoSet: ICAT's interval at LMS's value": _icat(
        lambda ss, lms: (ss, replace(lms, low=lms.value, high=lms.value))
    ),
    "StereoSet: ICAT's largest at SS's limits": _put(
        stereoset_audit, "_icat", lambda honest, ss, lms: _at_limits(honest(ss, lms), ss, lms)
    ),
    "StereoSet: ICAT's interval by SS alone": _put(
        stereoset_audit, "_icat", lambda honest, ss, lms: replace(honest(ss, lms), low=ss.low, high=ss.high)
    ),
    "BBQ: names are all": _put(bbq_items, "_names_only", lambda honest, *words: True),
    "BBQ: names are what is none": _put(bbq_items, "_names_only", lambda honest, *words: not honest(*words)),
    "written BBQ: interval half as wide": _written(lambda found: _wide(found, 0.5)),
    "written BBQ: interval twice as wide": _written(lambda found: _wide(found, 2.0)),
    "shares: of what is not so": _put(
        shares, "share", lambda honest, values, *words, **o: honest(1 - values, *words, **o)
    ),
}
"""None of these changes a score: they stand between answers and report."""


KINDS = {
    "BBQ": "_bbq",
    "written BBQ": "_written_bbq",
    "StereoSet": "_stereoset",
    "CrowS-Pairs": "wrong_of_known_pairs",
    "WinoBias": "_winobias",
    "Winogender": "_winogender",
    "refusals": "_refusals",
    "drawn": "_drawn_refusals",
    "swaps": "_exchanged_words",
    "continuations": "_continuations",
}
"""How the name of a fault begins that is of one kind -> what asks that kind. Other faults are of several."""


class Noticed(Exception):
    """Something wrong was told: what comes after it need not be asked."""


def told_at_once(fault: str, patch: pytest.MonkeyPatch) -> None:
    """Ask of a fault of one kind that kind alone, and of others no further than to the first sentence."""
    if (own := KINDS.get(fault.partition(":")[0])) is not None:
        for name in set(KINDS.values()) - {own}:
            patch.setattr(answers_known, name, lambda: (0, []))

    def told(*words: Any) -> list[str]:
        if found := found_wrong(*words):
            raise Noticed(found[0])
        return found

    patch.setattr(answers_known, "found_wrong", told)


def test_sound_numbers_have_no_fault() -> None:
    compared, faults = wrong_of_known_answers()
    assert faults == [] and compared > 60


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_between_answers_and_report_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told_at_once(fault, monkeypatch)
    FAULTS[fault](monkeypatch)
    try:
        _, faults = wrong_of_known_answers()
    except (Noticed, ArithmeticError, LookupError, ValueError) as error:  # An error on the way is noticed, too.
        faults = [str(error)]
    assert faults
