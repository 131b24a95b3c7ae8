"""Does a model refuse more often when a request names one group rather than another?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.bias.conclusions import refusal_findings
from lm_audit.audits.bias.generated import refusal_words
from lm_audit.audits.bias.generated.refusal_shares import RefusalTable, record_rates
from lm_audit.audits.bias.grid.lexicon.linting import axis_findings, language_fault
from lm_audit.audits.bias.grid.lexicon.parts import SLOT, Axis
from lm_audit.audits.given.given_rows import holds_rows, texts_of_rows, texts_or_set
from lm_audit.errors import DataError
from lm_audit.evidence import Evidence
from lm_audit.models.capabilities import Capability
from lm_audit.models.text.thinking import closed_thoughts, split_reply
from lm_audit.shared.textfiles import read_toml
from lm_audit.shared.textfiles.fields import check_keys, tables_field, text_field
from lm_audit.shared.visible import is_blank, seen
from lm_audit.sources import content_digest

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

CUT = "no answer: the reply ended inside its thought"
EMPTY = "no answer: the reply holds no text"


@dataclass(frozen=True)
class RefusalSet:
    """Requests with a group slot, the axes to fill it with, and what a refusal begins with.

    ``openers`` are added to those that are known anyway (:mod:`lm_audit.audits.bias.generated.refusal_words`);
    ``refusing`` and ``compliant`` are the openers whose log-probabilities are weighed.
    """

    requests: tuple[str, ...]
    axes: tuple[Axis, ...]
    openers: tuple[str, ...]
    refusing: str
    compliant: str
    language: str = "en"

    def is_refusal(self, reply: str) -> bool:
        """Whether the answer in a reply begins as a refusal does; a thought before it does not count."""
        answer = split_reply(reply).answer
        return answer is not None and refusal_words.is_refusal(answer, self.openers)


def load_refusal_set(path: str | Path, *, like: str | Path | None = None) -> RefusalSet:
    """The set in a TOML file; ``DataError`` names a missing key or a request without its slot.

    Requests, openers and groups may stand elsewhere: ``requests = {from = "OWNER/NAME:CONFIG", column = "prompt"}``
    (:func:`~lm_audit.audits.given.given_rows.texts_or_set`). Rows (a file of them, or a data set of the hub) are
    requests, in a column ``request``, ``prompt`` or ``text``; what else a set needs is then that of the TOML file
    ``like``.
    """
    rows = texts_of_rows(path, ("request", "prompt", "text")) if like is not None and holds_rows(path) else None
    place = str(path)
    path = Path(path if rows is None or like is None else like)
    needed = ("requests", "axes", "refusing", "compliant")
    document = check_keys(read_toml(path), path, needed=needed, optional=("openers", "language"))
    requests = texts_or_set(document, "requests", path, default="request") if rows is None else rows
    if not requests:
        raise DataError("holds no request; at least one with the slot is needed", file=place, field="requests")
    places: dict[str, int] = {}
    for row, request in enumerate(requests, start=1):
        if request.count(SLOT) != 1:
            raise DataError(f"{request!r:.200} must hold {SLOT} once", file=place, row=row, field="requests")
        if (first := places.setdefault(seen(request), row)) != row:
            raise DataError(
                f"{request!r:.80} is request {first} again; once counts", file=place, row=row, field="requests"
            )
    refusing, compliant = (text_field(document, key, path) for key in ("refusing", "compliant"))
    for key, opener in (("refusing", refusing), ("compliant", compliant)):
        if is_blank(opener):
            raise DataError("is empty; an answer that begins so is needed", file=path, field=key)
    if seen(refusing) == seen(compliant):
        raise DataError("is the refusing opener too; their log-probabilities are weighed", file=path, field="compliant")
    axes = tuple(_axis(entry, row, path) for row, entry in enumerate(tables_field(document, "axes", path), start=1))
    _check_axes(axes, path)
    openers = tuple(texts_or_set(document, "openers", path, default="opener"))
    _check_openers(openers, compliant, path)
    language = text_field(document, "language", path, default="en")
    if (fault := language_fault(language)) is not None:
        raise DataError(fault, file=path, field="language")
    return RefusalSet(tuple(requests), axes, openers, refusing, compliant, language)


def _check_axes(axes: Sequence[Axis], path: Path) -> None:
    if not axes:
        raise DataError("holds no axis; write [[axes]] with a name and its groups", file=path, field="axes")
    names = [seen(axis.name) for axis in axes]
    for row, name in enumerate(names, start=1):
        if name in names[: row - 1]:
            raise DataError(f"{name!r} is axis {names.index(name) + 1} again", file=path, row=row, field="axes")


def _check_openers(openers: Sequence[str], compliant: str, path: Path) -> None:
    """Every answer begins with an empty opener, and a compliant one with an opener that it begins with."""
    for row, opener in enumerate(openers, start=1):
        if is_blank(opener):
            raise DataError("is empty: every answer would be a refusal", file=path, row=row, field="openers")
        if seen(compliant).casefold().startswith(seen(opener).casefold()):
            raise DataError(
                f"{opener!r:.80} begins the compliant opener {compliant!r:.80}", file=path, row=row, field="openers"
            )


def _axis(entry: Mapping[str, object], row: int, path: Path) -> Axis:
    check_keys(entry, path, needed=("name", "groups"), where="axes", row=row)
    try:
        groups = texts_or_set(entry, "groups", path, default="group", row=row)
        axis = Axis.of(text_field(entry, "name", path, row=row), groups)
    except DataError as error:
        if error.file is not None:
            raise
        raise DataError(str(error), file=path, row=row, field="axes") from error
    if findings := list(axis_findings(axis)):
        raise DataError("; ".join(map(str, findings)), file=path, row=row, field="axes")
    return axis


def refusal_rates(
    model: LanguageModel,
    refusals: RefusalSet,
    axis: Axis,
    *,
    max_new_tokens: int = 16,
    n_seeds: int = 1,
    temperature: float = 0.0,
    confidence: float = 0.95,
    seed: int = 0,
) -> Evidence:
    """Refusal rate of each group of an axis (percent, requests as clusters), and the largest difference between two.

    Each request is asked about each group in the model's chat template, greedily or ``n_seeds`` times at a temperature.
    What counts is the answer after the thought; a reply that ended inside its thought, or that holds no text, is "no
    answer": counted and shown apart, neither refusal nor compliance. Beside the rate stands the lean, log p(refusing
    opener) - log p(compliant opener) in nats, which moves long before the rate does. Tests pair by request, Holm over
    the pairs of groups.
    """
    prompts = [request.replace(SLOT, group) for request in refusals.requests for group in axis.groups]
    shape = (len(refusals.requests), len(axis.groups))
    refused = np.full((*shape, n_seeds), np.nan)
    replies: list[list[Any]] = []
    for draw in range(n_seeds):
        generated = model.generate(
            prompts, max_new_tokens=max_new_tokens, temperature=temperature, seed=seed + draw, chat=True
        )
        replies.append(list(generated))
        answers = [
            float(refusal_words.is_refusal(reply.answer or "", refusals.openers)) if _answered(reply) else np.nan
            for reply in generated
        ]
        refused[:, :, draw] = np.array(answers).reshape(shape)
    scored = model.offers[Capability.LOGLIKELIHOOD].has
    lean = _lean(model, refusals, prompts).reshape(shape) if scored else np.full(shape, np.nan)
    evidence = Evidence("bias", headline="bias.refusal_max_difference")
    unanswered = int(np.isnan(refused).sum())
    evidence.parameters.update(
        {
            "axis": axis.name,
            "language": refusals.language,
            "requests": len(refusals.requests),
            "draws": n_seeds,
            "temperature": temperature,
            "max_new_tokens": max_new_tokens,
            "thinking_tokens": model.chat_settings.thinking_tokens,
            "no_answer": unanswered,
            "seed": seed,
        }
    )
    evidence.extend_rows(_rows(refusals, axis, prompts, replies, refused, lean))
    tests = record_rates(evidence, RefusalTable(axis.groups, refused, lean), confidence=confidence, seed=seed)
    evidence.finding(*refusal_findings(evidence, tests, refusals.language, axis.name))
    if not scored:
        evidence.notes.append("No lean: the model gives no log-probabilities of a given text.")
    evidence.notes += closed_thoughts([reply.thought_cut for given in replies for reply in given])
    if unanswered:
        evidence.notes.append(
            f"Warning: {unanswered} of {refused.size} replies hold no answer: they ended inside their thought, or "
            "hold no text (a tool call, say). They count neither as refusal nor as compliance; more room for thoughts: "
            "--thinking-tokens."
        )
    return evidence


def _answered(reply: Any) -> bool:
    """Whether a reply says anything: an empty one neither refuses nor complies."""
    return reply.answer is not None and not is_blank(reply.answer)


def _lean(model: LanguageModel, refusals: RefusalSet, prompts: Sequence[str]) -> NDArray[np.float64]:
    rendered = [model.render_chat(prompt, answering=True) for prompt in prompts]
    requests = [(text, opener) for text in rendered for opener in (refusals.refusing, refusals.compliant)]
    # The template already writes whatever the model's turns begin with.
    scores = model.loglikelihood(requests, bos="none")
    return np.array([first.total - second.total for first, second in zip(scores[::2], scores[1::2], strict=True)])


def _rows(
    refusals: RefusalSet,
    axis: Axis,
    prompts: Sequence[str],
    replies: Sequence[Sequence[Any]],
    refused: NDArray[np.float64],
    lean: NDArray[np.float64],
) -> list[dict[str, Any]]:
    rows = []
    for draw, given in enumerate(replies):
        for number, prompt in enumerate(prompts):
            r, g = divmod(number, len(axis.groups))
            reply, score = given[number], refused[r, g, draw]
            name = f"{axis.name} | {refusals.requests[r]} | {axis.groups[g]}"
            rows.append(
                {
                    "item": name if len(replies) == 1 else f"{name} | draw {draw + 1}",
                    "content": content_digest(prompt, refusals.openers, refusals.refusing, refusals.compliant),
                    "request": refusals.requests[r],
                    "group": axis.groups[g],
                    "prompt": prompt,
                    "reply": CUT if reply.answer is None else reply.answer if _answered(reply) else EMPTY,
                    "thought": reply.thought,
                    "answered": float(_answered(reply)),
                    "refused": None if np.isnan(score) else float(score),
                    "lean": None if np.isnan(lean[r, g]) else float(lean[r, g]),
                }
            )
    return rows
