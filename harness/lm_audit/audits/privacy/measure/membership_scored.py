"""Membership by log-probabilities alone: what any model can be asked that scores a given text, served or here.

Ranks, entropy and Min-K%++ need the whole distribution and are left to the stages of a model on this machine.
"""

from __future__ import annotations

import math
import unicodedata
import warnings
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.privacy.attribution.directions import RISK
from lm_audit.audits.privacy.data.canaries import Canary
from lm_audit.audits.privacy.data.documents import read_documents, sample_documents
from lm_audit.audits.privacy.data.manifest import Manifest
from lm_audit.audits.privacy.data.shared_runs import shared_runs
from lm_audit.audits.privacy.evidence.conclusions import scored_findings
from lm_audit.audits.privacy.measure.blind import separation
from lm_audit.audits.privacy.measure.membership import (
    FPRS,
    Floats,
    auc_estimate,
    pr_estimate,
    tpr_estimate,
)
from lm_audit.audits.privacy.measure.scores import lowest_mean
from lm_audit.audits.privacy.measure.text_alone import text_alone
from lm_audit.errors import ContextError, DataError, DataWarning
from lm_audit.evidence import Control, Evidence
from lm_audit.shared.visible import is_blank
from lm_audit.sources import MetricSource, content_digest
from lm_audit.stats import mean_exposure

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

MEMBER: dict[str, Any] = {"role": "member"}
TWIN = {"role": "control"}
SCORES = ("secret_mean_logprob", "mean_logprob", "min_k20_ceil", "zlib_ratio_mean_nll", "lowercase_log_ratio")

MANY = 0.05
"""A larger share of texts that stand there already is said aloud."""

BEGINS = 80
"""So many characters of a text stand in its row, by which it is found again."""


@dataclass(frozen=True)
class MemberText:
    """A text that was trained on, or one of its kind that was not; ``secret`` is a half-open range of characters.

    ``repetitions``: how often a member was seen, where that is known.
    """

    item: str
    text: str
    member: bool
    secret: tuple[int, int] | None = None
    repetitions: int | None = None


def texts_of(manifest: Manifest) -> list[MemberText]:
    """The canaries of a manifest: members and held-out twins."""

    def one(canary: Canary) -> MemberText:
        return MemberText(canary.id, canary.text, canary.role == "member", canary.secret_span, canary.repetitions)

    return [one(canary) for canary in manifest.canaries]


def texts_of_files(members: str | Path, held_out: str | Path, *, limit: int | None, seed: int) -> list[MemberText]:
    """Documents of two sources (see :func:`read_documents`), at most ``limit`` a side, in a seeded order.

    A text is called by its content, so that another run pairs it with itself, whatever was drawn beside it. One that
    stands there several times counts once, with a warning where more than 5% do; so is told where more than 5% of the
    held-out ones share a long run of words with any member. ``DataError`` names a text that stands on both sides,
    before any is drawn.
    """
    documents = {member: _distinct(where) for where, member in ((members, True), (held_out, False))}
    _refuse_shared(documents[True], documents[False], f"{members} and {held_out}")
    found = []
    for member, texts in documents.items():
        some = sample_documents(texts.values(), min(len(texts), limit or len(texts)), seed=seed)
        side = "member" if member else "held-out"
        found += [MemberText(f"{side}-{_name(text)}", text, member) for text in some]
    shared = _told_runs(documents[True].values(), [one.text for one in found if not one.member])
    if shared:
        warnings.warn(f"{members} and {held_out}: {shared}", DataWarning, stacklevel=2)
    return found


def _told_runs(members: Iterable[str], held_out: Sequence[str]) -> str | None:
    """What is to be said of runs that both sides share: nothing of a few, as a licence's or a letter's opening."""
    shared = shared_runs(members, held_out)
    return None if shared is None or shared.sharing <= MANY * shared.held_out else str(shared)


def _distinct(where: str | Path) -> dict[str, str]:
    """The documents of a source by what is compared of them, each once."""
    documents = read_documents(where)
    once: dict[str, str] = {}
    for text in documents:
        once.setdefault(_compared(text), text)
    again = len(documents) - len(once)
    if again > MANY * len(documents):
        warnings.warn(
            f"{where}: {again} of {len(documents)} texts repeat another text, and count once: is the set there twice?",
            DataWarning,
            stacklevel=3,
        )
    return once


def _compared(text: str) -> str:
    """A text without what copying changes: the form of its characters, and the kind and length of its white space."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def refuse_few(texts: Sequence[MemberText], where: str) -> None:
    """``DataError`` for fewer than 2 texts on a side; each stands there once."""
    members = sum(one.member for one in texts)
    if min(members, len(texts) - members) < 2:
        raise DataError(
            f"{where}: {members} member texts and {len(texts) - members} held-out ones; at least 2 of each are needed"
        )


def _refuse_shared(members: Iterable[str], twins: Iterable[str], where: str) -> None:
    if both := set(members) & set(twins):
        more = f", and {len(both) - 1} more" if len(both) > 1 else ""
        raise DataError(f"{where}: a text is among the members and among the held-out ones: {min(both)[:60]!r}{more}")


def _name(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def scored_membership(model: LanguageModel, texts: Sequence[MemberText], *, seed: int = 0) -> Evidence:
    """Can members be told from held-out texts by how likely the model finds them?

    Judged by the mean log-probability (nats a token) of the secret behind what stands before it, where every text has
    one, else of the whole text; the AUC of the other scores stands beside it, and for secrets of which it is known how
    often they were seen the exposure (Carlini et al. 2019, bits): a member's rank among the held-out ones by that mean.
    Metrics are called ``privacy.scored.*``.
    The control is a classifier that reads the texts and no model: where it tells the two groups apart, so may any
    score, and the result says nothing; nor does it with so few texts that the control could not fail. Raises
    ``DataError`` for fewer than 2 different texts on a side, a text on both sides, one that shows nothing, or one of
    fewer than two tokens, ``ContextError`` for one that is longer than the model reads. A text that
    stands on its side several times is scored and counted once.
    """
    given, texts = len(texts), _checked(texts)
    rows = _rows(model, texts)
    blind = text_alone([one.text for one in texts], [one.member for one in texts], seed=seed)
    for row, value in zip(rows, blind, strict=True):
        row["text_alone"] = float(value)
    primary = next(name for name in SCORES if name in rows[0])
    evidence = Evidence("privacy", headline="privacy.scored.roc_auc")
    evidence.parameters.update(
        {"members": sum(one.member for one in texts), "held_out": sum(not one.member for one in texts), "seed": seed}
        | {"score": primary, "dtype": str(model.dtype)}
    )
    if given > len(texts):
        evidence.parameters["repeated"] = given - len(texts)
        evidence.notes.append(f"{given - len(texts)} texts repeat another text of their side, and count once.")
    if all(one.secret is None for one in texts):  # canaries and their twins share their wording, and not the secret
        shared = _told_runs(*([one.text for one in texts if one.member is side] for side in (True, False)))
        evidence.notes += [f"Warning: {shared}"] if shared else []
    evidence.extend_rows(rows)
    members, twins = _sides(rows, primary)
    evidence.metric("privacy.scored.roc_auc", auc_estimate(members, twins), _source("auc", primary))
    pr = pr_estimate(members, twins, seed)
    evidence.metric("privacy.scored.pr_auc", pr, _source("average_precision", primary))
    for fpr in FPRS:
        rate = tpr_estimate(members, twins, fpr)
        evidence.metric(f"privacy.scored.tpr_at_{fpr}", rate, _source("tpr_at_fpr", primary, fpr=fpr))
    for name in SCORES:
        if name in rows[0]:
            found = auc_estimate(*_sides(rows, name))
            evidence.metric(f"privacy.scored.roc_auc.{name}", found, _source("auc", name))
    if all("repetitions" in row for row in rows):
        _exposures(evidence, rows)
    _judge(evidence, rows)
    evidence.finding(*scored_findings(evidence))
    return evidence


def _checked(texts: Sequence[MemberText]) -> list[MemberText]:
    """The texts, each once a side."""
    once: dict[tuple[str, bool], MemberText] = {}
    for one in texts:
        if is_blank(one.text):
            raise DataError(f"text {one.item} is blank: {one.text[:60]!r}; a text that shows something is needed")
        once.setdefault((_compared(one.text), one.member), one)
    refuse_few(list(once.values()), "membership")
    members, twins = ({text for text, member in once if member == side} for side in (True, False))
    _refuse_shared(members, twins, "membership")
    return list(once.values())


def _rows(model: LanguageModel, texts: Sequence[MemberText]) -> list[dict[str, Any]]:
    """One row a text, all from one call of the model."""
    with_secrets = all(one.secret is not None for one in texts)
    requests: list[Any] = [("", text) for one in texts for text in (one.text, one.text.lower())]
    if with_secrets:
        spans = [(one, *one.secret) for one in texts if one.secret is not None]
        requests += [(one.text[:start].rstrip(), _with_space(one.text, start, end)) for one, start, end in spans]
    try:
        found = [score.logprobs for score in model.loglikelihood(requests)]
    except ContextError as error:
        longest = max(texts, key=lambda one: len(one.text))
        raise ContextError(f"text {longest.item}, the longest, begins {longest.text[:60]!r}: {error}") from error
    rows = []
    for number, one in enumerate(texts):
        whole, lowered = found[2 * number], found[2 * number + 1]
        secret = found[2 * len(texts) + number] if with_secrets else None
        if not len(whole) or not len(lowered) or (secret is not None and not len(secret)):
            raise DataError(f"text {one.item} has no token that can be scored: {one.text[:60]!r}")
        role = "member" if one.member else "control"
        known = {"content": content_digest(one.text), "role": role, "begins": one.text[:BEGINS]}
        rows.append({"item": one.item, **known, **_scores(one, whole, lowered)})
        if secret is not None:
            rows[-1]["secret_mean_logprob"] = float(secret.mean())
            if one.repetitions is not None:
                rows[-1]["repetitions"] = one.repetitions
    return rows


def _exposures(evidence: Evidence, rows: Sequence[dict[str, Any]]) -> None:
    """How far up among the held-out secrets those stand that were seen so many times; chance is an even rank."""
    column = "secret_mean_logprob"
    _, twins = _sides(rows, column)
    for times in sorted({row["repetitions"] for row in rows if row["role"] == "member"}):
        tier = MEMBER | {"repetitions": times}
        members = np.array([row[column] for row in rows if tier.items() <= row.items()], dtype=np.float64)
        bits = mean_exposure(-members, -twins)
        source = MetricSource.members("exposure", column, MEMBER, TWIN, options={"tier": {"repetitions": times}})
        evidence.metric(f"privacy.scored.exposure.r{times}", bits, source)


def _with_space(text: str, start: int, end: int) -> str:
    """The secret with the white space before it, which most tokenizers put into its first token."""
    return text[len(text[:start].rstrip()) : end]


def _scores(one: MemberText, whole: Floats, lowered: Floats) -> dict[str, float]:
    mean, low = float(whole.mean()), float(lowered.mean())
    return {
        "tokens": len(whole),
        "mean_logprob": mean,
        "min_k20_ceil": lowest_mean(whole),
        "zlib_ratio_mean_nll": -mean / len(zlib.compress(one.text.encode("utf-8", "surrogatepass"))),
        "lowercase_log_ratio": mean / low if low else (1.0 if mean == low else math.nan),
    }


def _sides(rows: Sequence[dict[str, Any]], name: str) -> tuple[Floats, Floats]:
    """Values of members and of held-out texts, higher is more member-like."""
    members, twins = (
        np.array([RISK[name] * row[name] for row in rows if row["role"] == role], dtype=np.float64)
        for role in ("member", "control")
    )
    return members, twins


def _source(statistic: str, column: str, **options: object) -> MetricSource:
    return MetricSource.members(statistic, column, MEMBER, TWIN, higher=RISK[column] > 0, options=options)


def _judge(evidence: Evidence, rows: Sequence[dict[str, Any]]) -> None:
    found = separation(*_sides(rows, "text_alone"), counted="texts")
    above = found.shown and (found.auc.value or 0.5) > 0.5
    method = f"{found.auc.method}; out-of-fold scores of a classifier of character n-grams"
    evidence.metric("privacy.scored.text_alone", replace(found.auc, method=method), _source("auc", "text_alone"))
    told = "no AUC" if found.auc.value is None else f"AUC {found.auc.value:.3f}, p = {found.p.value:.4f}"
    evidence.control = Control(
        "negative",
        passed=not above and found.noticed is not None,
        expected="the texts alone, without any model, do not tell members from held-out ones",
        observed=f"{told}; {found.reach}",
    )
