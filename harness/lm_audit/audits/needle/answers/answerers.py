"""Answers to samples: those of a model, of a stub that reads the prompt, or of another system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from lm_audit.audits.needle.answers.scores import settled
from lm_audit.audits.needle.haystack.token_offsets import Encoder
from lm_audit.audits.needle.samples.frame import MESSAGES
from lm_audit.audits.needle.samples.sample import Sample, hash_ids
from lm_audit.audits.needle.samples.wording import join_keys
from lm_audit.errors import ContextError, DataError, beyond_context
from lm_audit.models.text.thinking import Reply, opened_thought, split_reply
from lm_audit.models.text.thought_markers import MARKERS

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel
    from lm_audit.models.generation.shared_prefix import Completion


_TAIL = 200
"""Characters at a prompt's end in which an opened thought is looked for."""


@dataclass(frozen=True)
class Answer:
    """One reply. ``finish``: eos, length (at the token limit), enough (nothing could change the score), or unknown.

    ``text`` is all that was written; ``thought`` and ``answer`` are its parts. ``value_logprob`` is the log-probability
    of the values in place of the answer (nats, summed over ``value_tokens``), and ``value_greedy`` whether each of its
    tokens was the likeliest; ``None`` where the prompt opens a thought, behind which that place is not known.
    ``opened`` names the markers of that thought, ``reasoning`` is a thought that came apart from the text,
    ``thought_cut``: it was closed at its limit. ``prompt_tokens``: the prompt's tokens as a server counted them, where
    it was sent as text; ``approximate``: nobody but that server can count them.
    """

    text: str
    finish: str = "unknown"
    tokens: int | None = None
    value_logprob: float | None = None
    value_tokens: int | None = None
    value_greedy: bool | None = None
    opened: str | None = None
    reasoning: str | None = None
    thought_cut: bool = False
    prompt_tokens: int | None = None
    approximate: bool = False

    @cached_property
    def _reply(self) -> Reply:
        markers = next((one for one in MARKERS if one.name == self.opened), None)
        return split_reply(self.text, opened=markers, reasoning=self.reasoning, cut=self.finish == "length")

    @property
    def thought(self) -> str | None:
        """What was written before the answer, ``None`` where there is no thought."""
        return self._reply.thought

    @property
    def answer(self) -> str | None:
        """The answer, ``None`` where it never came: the reply ended inside its thought."""
        return self._reply.answer


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

    @property
    def _by_text(self) -> bool:
        """Whether the model is asked by text, since it takes no token ids or nobody counts its tokens."""
        return not self._model.takes_token_ids

    def answer(self, samples: Sequence[Sample]) -> list[Answer]:
        """Greedy answers of at most ``tokens_to_generate`` tokens, and the values' log-probability in the same pass.

        A thought has the room of the model's ``chat_settings`` beside that.
        Raises ``ContextError`` for a sample that is longer than the model reads, ``DataError`` for one made for another
        tokenizer.
        """
        for sample in samples:
            reason = too_long(self._model, sample.actual_length, self._thought_room(sample))
            if reason:
                raise ContextError(reason, field=sample.id)
        if self._by_text:
            return self._asked_by_text(samples)
        found: dict[int, Completion] = {}
        for group in _by_budget(samples):
            found |= zip(map(id, group), self._complete(group), strict=True)
        return [
            Answer(
                one.text,
                one.finish_reason,
                len(one.token_ids),
                one.scores.total if one.scores else None,
                len(one.scores) if one.scores else None,
                one.scores.greedy if one.scores else None,
                opened=opened_by(sample),
                thought_cut=one.thought_cut,
            )
            for sample, one in ((sample, found[id(sample)]) for sample in samples)
        ]

    def _asked_by_text(self, samples: Sequence[Sample]) -> list[Answer]:
        """Answers of a server that is sent messages or plain text, each with the tokens that it counted."""
        found: dict[int, Answer] = {}
        for group in _by_budget(samples):
            for chat in (True, False):
                some = [sample for sample in group if (sample.metadata.get("template") == MESSAGES) is chat]
                if not some:
                    continue
                replies = self._model.generate(
                    [sample.prompt for sample in some], max_new_tokens=max(1, group[0].tokens_to_generate), chat=chat
                )
                for sample, one in zip(some, replies, strict=True):
                    self._check_count(sample, one.prompt_tokens)
                    found[id(sample)] = Answer(
                        one.text,
                        one.finish_reason,
                        len(one.token_ids) if self._model.counts_tokens else None,
                        opened=opened_by(sample),
                        reasoning=one.reasoning,
                        prompt_tokens=one.prompt_tokens,
                        approximate=not self._model.counts_tokens,
                    )
        return [found[id(sample)] for sample in samples]

    def _check_count(self, sample: Sample, counted: int | None) -> None:
        """``DataError`` where the server reads another number of tokens than the sample was built to have."""
        built = sample.actual_length - sample.tokens_to_generate
        if self._model.counts_tokens and counted is not None and counted != built:
            raise DataError(
                f"was built to have {built} tokens for model {self._model.name}, its server counts {counted}: name the "
                "tokenizer of the model that is served with --tokenizer",
                field=sample.id,
            )

    def _thought_room(self, sample: Sample) -> int:
        """Tokens that a thought takes for certain beside the answer's."""
        return (self._model.chat_settings.thinking_tokens or 0) if opened_by(sample) else 0

    def _complete(self, group: Sequence[Sample]) -> list[Completion]:
        return self._model.complete(
            [self._prompt_ids(sample) for sample in group],
            [[] if opened_by(sample) else value_ids(self._encoder, sample) for sample in group],
            max_new_tokens=max(1, group[0].tokens_to_generate),
            enough=lambda index, text: settled(text, group[index].outputs),
            opened=[opened_thought(sample.prompt[-_TAIL:]) for sample in group],
            thinking_tokens=self._model.chat_settings.thinking_tokens,
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


def opened_by(sample: Sample) -> str | None:
    """The name of the markers by which the end of a prompt opens a thought."""
    markers = opened_thought(sample.prompt[-_TAIL:])
    return markers.name if markers else None


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
    return model.context_window


def too_long(model: LanguageModel, tokens: int, thought: int = 0) -> str | None:
    """Why a prompt of so many tokens, answer included, is not given to the model; ``None`` where it fits.

    ``thought``: tokens that the model may think besides.
    """
    context = context_of(model)
    if context is None or tokens + thought <= context:
        return None
    what = f"a prompt of {tokens} tokens, answer included" + (f", and its thought of {thought}" if thought else "")
    advice = "ask for shorter lengths" + (" or fewer --thinking-tokens" if thought else "")
    return beyond_context(what, tokens + thought, model.name, context, advice)


def _by_budget(samples: Sequence[Sample]) -> list[list[Sample]]:
    groups: dict[int, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.tokens_to_generate, []).append(sample)
    return list(groups.values())
