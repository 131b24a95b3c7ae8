"""Answers to samples: those of a model, of a stub that reads the prompt, or of another system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lm_audit.audits.needle.sample import Sample, hash_ids
from lm_audit.audits.needle.scores import settled
from lm_audit.audits.needle.tokens import Encoder
from lm_audit.audits.needle.wording import join_keys
from lm_audit.errors import DataError

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel
    from lm_audit.models.shared_prefix import Completion


@dataclass(frozen=True)
class Answer:
    """One answer. ``finish``: eos, length (at the token limit), enough (nothing could change the score), or unknown.

    ``value_logprob`` is the log-probability of the values in place of the answer (nats, summed over ``value_tokens``),
    and ``value_greedy`` whether each of its tokens was the likeliest.
    """

    text: str
    finish: str = "unknown"
    tokens: int | None = None
    value_logprob: float | None = None
    value_tokens: int | None = None
    value_greedy: bool | None = None


class Answerer(Protocol):
    """Whatever answers samples."""

    def answer(self, samples: Sequence[Sample]) -> list[Answer]:
        """One answer a sample."""
        ...


class ModelAnswerer:
    """A model's answers; prompts that begin alike share their keys and values."""

    def __init__(self, model: LanguageModel):
        self._model = model
        self._encoder = Encoder(model.tokenizer)

    def answer(self, samples: Sequence[Sample]) -> list[Answer]:
        """Greedy answers of at most ``tokens_to_generate`` tokens, and the values' log-probability in the same pass.

        Raises ``DataError`` for a sample that is longer than the model's context or made for another tokenizer.
        """
        for sample in samples:
            reason = beyond_context(self._model, sample.actual_length)
            if reason:
                raise DataError(reason, field=sample.id)
        found: dict[int, Completion] = {}
        for group in _by_budget(samples):
            found |= zip(map(id, group), self._complete(group), strict=True)
        return [
            Answer(
                one.text,
                one.finish_reason,
                len(one.token_ids),
                one.scores.total,
                len(one.scores),
                one.scores.greedy,
            )
            for one in (found[id(sample)] for sample in samples)
        ]

    def _complete(self, group: Sequence[Sample]) -> list[Completion]:
        from lm_audit.models.shared_prefix import complete

        return complete(
            self._model,
            [self._prompt_ids(sample) for sample in group],
            [value_ids(self._encoder, sample) for sample in group],
            max_new_tokens=max(1, group[0].tokens_to_generate),
            enough=lambda index, text: settled(text, group[index].outputs),
        )

    def _prompt_ids(self, sample: Sample) -> list[int]:
        ids = self._encoder.encode(sample.prompt, special=sample.special).ids
        if sample.ids_sha256 and hash_ids(ids) != sample.ids_sha256:
            found, wanted = len(ids), sample.actual_length - sample.tokens_to_generate
            raise DataError(
                f"has {found} tokens for model {self._model.name}, {wanted} when it was built: it was made for another "
                "tokenizer or changed since; build it with this model's tokenizer",
                field=sample.id,
            )
        return [int(one) for one in ids]


def value_ids(encoder: Encoder, sample: Sample) -> list[int]:
    """The ids of the answering values as they follow the prompt."""
    tail = sample.prompt[-200:]
    separator = "" if not sample.answer_prefix or sample.answer_prefix[-1] in "：:" else " "
    value = separator + join_keys(sample.outputs)
    before, both = encoder.encode(tail).ids, encoder.encode(tail + value).ids
    if (both[: len(before)] == before).all() and len(both) > len(before):
        return [int(one) for one in both[len(before) :]]
    return [int(one) for one in encoder.encode(value).ids]


def context_of(model: LanguageModel) -> int | None:
    """Tokens that the model was trained to read, ``None`` where its configuration does not say."""
    from lm_audit.models.context import context_window

    return context_window(model.module.config)


def beyond_context(model: LanguageModel, tokens: int) -> str | None:
    """Why a prompt of so many tokens, answer included, is not given to the model; ``None`` where it fits."""
    context = context_of(model)
    if context is None or tokens <= context:
        return None
    return (
        f"needs {tokens} tokens with its answer, beyond the trained context of {context} tokens of model {model.name}"
    )


def _by_budget(samples: Sequence[Sample]) -> list[list[Sample]]:
    groups: dict[int, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.tokens_to_generate, []).append(sample)
    return list(groups.values())
