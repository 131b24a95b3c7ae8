"""What the leakage audit concludes of a benchmark, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from lm_audit.audits.leakage.averages import THESE_FILES
from lm_audit.audits.leakage.half_option.single_files import LARGEST_FILE
from lm_audit.evidence import Evidence
from lm_audit.findings import Finding, claim, claim_above, more_of_hundred, of_hundred, times_text
from lm_audit.stats.estimate import Estimate

if TYPE_CHECKING:
    from lm_audit.audits.leakage.half_option.conditions import Effect

NATS_A_BYTE = 0.05
"""A smaller preference for the printed order does not matter: half an option of 20 bytes, 2.7 times as likely."""
SHARE = 0.05
PLACE = 0.1
NATS_A_PAIR = 1.0
BYTES = 20
"""Length of the rest of an option by which a preference is told in terms of odds."""
SHORT = 20
"""Characters: who knows the answers writes shorter ends of options too ("Mars" after "Earth")."""
SORTED_ASIDE = "; questions with sorted options aside, since any model expects these"
_PAGE = "leakage.md#how-to-read-it"


def _of_these_files(evidence: Evidence, name: str) -> str:
    """The metric that speaks of this benchmark's own files, which is what a verdict on the benchmark is about."""
    own = f"{name}.{THESE_FILES}"
    return own if own in evidence.metrics else name


def order_findings(evidence: Evidence, benchmark: str, *, by_style: bool = False) -> list[Finding]:
    """Does the model prefer the order in which the benchmark prints its options, and complete more of them in it?

    ``by_style``: more options are sorted than chance explains, an order that any model expects; the others decide.
    """
    kind = "order_effect_unsorted" if by_style else "order_effect"
    whole = f"leakage.{kind}.logprob"
    name = _of_these_files(evidence, whole)
    hits = evidence.metrics[f"leakage.{kind}.hits"]
    share = "" if hits.value is None else f", and {more_of_hundred(hits.value, 'options')} are completed word for word"
    factor = times_text(BYTES * (evidence.metrics[name].value or 0.0))
    return [
        claim_above(
            f"leakage.order.{benchmark}",
            _known(evidence, name),
            name,
            found=f"The model prefers the printed order of the options of {benchmark}: it has seen some or all of them",
            absent=f"On average the model does not prefer the printed order of the options of {benchmark}",
            unknown=f"Whether the model prefers the printed order of the options of {benchmark} cannot be told",
            null=0.0,
            margin=NATS_A_BYTE,
            p_of=f"{whole}.p",
            size=f"{BYTES} bytes of an option are {factor} times as likely in the printed order as in others{share}"
            f"{SORTED_ASIDE if by_style else ''}",
            counted="questions whose options are not sorted" if by_style else "questions",
            look="the questions with the largest difference between orders (items); then option order and completion",
            page=_PAGE,
        )
    ]


NAMED = 5
"""So many remembered files are named, the surest first."""


def file_findings(evidence: Evidence, effect: Effect, benchmark: str, by_style: bool) -> list[Finding]:
    """Are single files of the benchmark remembered? Nothing where fewer than two have questions enough to tell.

    Of many files one that was seen whole hardly moves the mean. ``effect`` is the one by which memory is judged.
    """
    alone = effect.single_files
    if alone is None:
        return []
    kind = "order_effect_unsorted" if by_style else "order_effect"
    name = f"leakage.{kind}.logprob.{LARGEST_FILE}"
    more = len(alone.remembered) - NAMED
    which = ", ".join(alone.remembered[:NAMED]) + (f" and {more} more" if more > 0 else "")
    of = f"{len(alone.remembered)} of {alone.files} files of {benchmark}"
    few = f"; {alone.few} files with too few questions aside" if alone.few else ""
    factor = times_text(BYTES * (alone.largest.value or 0.0))
    return [
        claim(
            f"leakage.files.{benchmark}",
            evidence.metrics[name],
            metric=name,
            side="above",
            found=f"The model prefers the printed order of the options of single files, {of}: {which}",
            absent=f"In none of {alone.files} files of {benchmark} by itself does the model prefer the printed order",
            unknown=f"Whether the model prefers the printed order of single files of {benchmark} cannot be told",
            null=0.0,
            margin=NATS_A_BYTE,
            p=alone.p,
            size=f"in the file that shows most {BYTES} bytes of an option are {factor} times as likely in the printed "
            f"order as in others{few}",
            counted="questions in each file",
            look="the table of files, and the questions of these files with the largest difference between orders "
            "(items)",
            page=_PAGE,
        )
    ]


def _known(evidence: Evidence, name: str) -> dict[str, Estimate]:
    """The metrics; where no question is left for the one that decides, with the reason."""
    effect = evidence.metrics[name]
    told = replace(effect, note="the options of all questions are sorted, an order that any model expects")
    return dict(evidence.metrics) | ({name: told} if "_unsorted" in name and not effect.n else {})


def completion_findings(evidence: Evidence, benchmark: str, lengths: Sequence[int] = ()) -> list[Finding]:
    """Does the model write the second half of options out, beyond what language gives?

    ``lengths``: of the halves that it wrote rightly, in characters. Short ones are said to be what may be known.
    """
    typical = int(median(lengths)) if lengths else SHORT
    aside = ": short ones, which it may know without having seen the set" if typical < SHORT else ""
    long = f"; half of what it writes has {typical} characters at most" if lengths else ""
    whole = "leakage.completion.exact.above_baseline"
    name = _of_these_files(evidence, whole)
    value = evidence.metrics[name].value or 0.0
    return [
        claim_above(
            f"leakage.completion.{benchmark}",
            evidence.metrics,
            name,
            found=f"The model writes out the second half of options of {benchmark} word for word{aside}",
            # A share that is small enough to be excluded need not be none.
            absent=f"Of 100 options of {benchmark} the model writes out fewer than {of_hundred(SHARE)} beyond chance"
            if value > 0
            else f"The model does not write out the second half of options of {benchmark} beyond chance",
            unknown=f"Whether the model writes out the second half of options of {benchmark} cannot be told",
            null=0.0,
            margin=SHARE,
            p_of=f"{whole}.p",
            size=f"{more_of_hundred(value, 'options')} than with another question before them{long}",
            counted="questions",
            look="what the model wrote beside what stands in the benchmark (items)",
            page=_PAGE,
        )
    ]


def place_findings(evidence: Evidence, benchmark: str, *, by_style: bool = False) -> list[Finding]:
    """Is the printed order likelier than other orders of the same options? ``by_style``: see :func:`order_findings`."""
    whole = f"leakage.{'option_order_unsorted' if by_style else 'option_order'}.place"
    name = _of_these_files(evidence, whole)
    value, aside = evidence.metrics[name].value or 0.0, SORTED_ASIDE if by_style else ""
    return [
        claim_above(
            f"leakage.place.{benchmark}",
            _known(evidence, name),
            name,
            found=f"The printed order of the options of {benchmark} is likelier than other orders",
            absent=f"On average the printed order of the options of {benchmark} is no likelier than other orders",
            unknown=f"Whether the printed order of the options of {benchmark} is likelier than others cannot be told",
            null=0.5,
            margin=PLACE,
            size=f"likelier than {of_hundred(value)} of 100 other orders, 50 by chance{aside}",
            counted="questions whose options are not sorted" if by_style else "questions",
            look="the questions whose printed order is the likeliest of all (items), those with sorted options apart",
            page=_PAGE,
        )
    ]


def row_findings(evidence: Evidence, benchmark: str) -> list[Finding]:
    """Does the model know which row follows which?"""
    name = "leakage.row_order.swap_gain"
    value = evidence.metrics[name].value or 0.0
    odds = times_text(value)
    return [
        claim_above(
            f"leakage.rows.{benchmark}",
            evidence.metrics,
            name,
            found=f"The model knows the order of the rows of {benchmark}: the file was trained on as it is",
            absent=f"On average neighbouring rows of {benchmark} are no likelier in their order than exchanged",
            unknown=f"Whether the model knows the order of the rows of {benchmark} cannot be told",
            null=0.0,
            margin=NATS_A_PAIR,
            p_of=f"{name}.p",
            size=f"two neighbours are {odds} times as likely in the order of the file as exchanged",
            counted="pairs of neighbouring rows",
            look="the pairs with the largest gain (items)",
            page=_PAGE,
        )
    ]


def text_findings(evidence: Evidence, benchmark: str) -> list[Finding]:
    """Are the benchmark's texts more familiar than clean ones? Nothing without clean texts."""
    name = "leakage.text.min_k20_plus.auc"
    if name not in evidence.metrics:
        return []
    value = evidence.metrics[name].value or 0.0
    return [
        claim_above(
            f"leakage.familiar.{benchmark}",
            evidence.metrics,
            name,
            found=f"The text of {benchmark} is more familiar to the model than the clean text",
            absent=f"On average the text of {benchmark} is no more familiar to the model than the clean text",
            unknown=f"Whether the text of {benchmark} is more familiar than the clean text cannot be told",
            null=0.5,
            margin=PLACE,
            p_of=name.removesuffix(".auc") + ".p",
            size=f"in {of_hundred(value)} of 100 pairs the benchmark's text is the more familiar one",
            counted="questions of each set",
            look="whether both sets are alike in length and subject: a difference in kind shows here too",
            page=_PAGE,
        )
    ]
