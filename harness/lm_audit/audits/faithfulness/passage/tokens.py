"""Passage: a prompt and its generation as tokens, with the user's own text located inside a chat template.

The prompt is tokenised without added special tokens (a beginning-of-text token exists only where a template writes it);
the generation is tokenised by itself and ends with the end-of-text token, appended by id. Token texts are cut from the
string by character offsets, so that they always join to the text, also where one character takes several tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lm_audit.audits.faithfulness.passage.sentences import Units, chunk_units, sentence_units, word_units
from lm_audit.errors import ContextError, DataError, UsageError, beyond_context
from lm_audit.models.text.chat import ChatTemplate
from lm_audit.models.text.token_spans import encode_texts, tells_offsets
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.shared.visible import is_blank

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel

Offsets = tuple[tuple[int, int], ...]
Prompt = str | Sequence[int] | Sequence[Mapping[str, str]]
"""Text, token ids, or chat messages (``role``, ``content``), of which the last user message is the explained text."""

_PLACEHOLDER = "\ue000user\ue001text\ue000"


@dataclass(frozen=True)
class Passage:
    """Token ids of prompt and generation, and which prompt positions are the user's (all, without a chat template).

    ``user_offsets`` count characters of ``user_text``, ``generation_offsets`` characters of ``generation_text``; a
    trailing end-of-text token has an empty range.
    """

    prompt_ids: tuple[int, ...]
    generation_ids: tuple[int, ...]
    user: tuple[int, ...]
    user_text: str
    user_tokens: tuple[str, ...]
    user_offsets: Offsets
    generation_text: str
    generation_tokens: tuple[str, ...]
    generation_offsets: Offsets
    eos_id: int | None
    ends_with_eos: bool

    @property
    def ids(self) -> list[int]:
        """Prompt and generation as one sequence."""
        return [*self.prompt_ids, *self.generation_ids]

    @property
    def columns(self) -> list[int]:
        """Absolute positions of the columns of an attribution: user text, then generation."""
        start = len(self.prompt_ids)
        return [*self.user, *range(start, start + len(self.generation_ids))]

    @property
    def tokens(self) -> tuple[str, ...]:
        """Texts of the columns of an attribution."""
        return self.user_tokens + self.generation_tokens

    @property
    def answer_end(self) -> int:
        """The last generated token before the end-of-text token."""
        return len(self.generation_ids) - 1 - (self.ends_with_eos and len(self.generation_ids) > 1)

    def prompt_units(self, unit: str, size: int = 10) -> Units:
        """The user's text cut into ``"token"``, ``"word"``, ``"sentence"`` or ``"chunk"`` units."""
        return _units(unit, size, self.user_text, self.user_tokens, self.user_offsets, None)

    def generation_units(self, unit: str, size: int = 10) -> Units:
        """The generation cut into units; the end-of-text token is one by itself."""
        eos = self.generation_tokens[-1] if self.ends_with_eos else None
        return _units(unit, size, self.generation_text, self.generation_tokens, self.generation_offsets, eos)


def _units(unit: str, size: int, text: str, tokens: tuple[str, ...], offsets: Offsets, eos: str | None) -> Units:
    if unit == "sentence":
        return sentence_units(text, offsets, ends_with_eos=eos)
    if unit == "word":
        return word_units(tokens, ends_with_eos=eos is not None)
    if unit == "token":
        return chunk_units(tokens, 1)
    if unit == "chunk":
        if size < 1:
            raise UsageError(f"chunk size is {size!r}; it must be at least one token")
        return chunk_units(tokens, size)
    raise UsageError(f"unit is {unit!r}; it must be 'token', 'word', 'sentence' or 'chunk'")


def encode_passage(
    tokenizer: Tokenizer,
    prompt: Prompt,
    generation: str | Sequence[int],
    *,
    chat: bool = False,
    chat_args: Mapping[str, object] | None = None,
) -> Passage:
    """The passage of a prompt and a generation.

    ``chat=True`` puts a text prompt into the tokenizer's chat template, with ``chat_args`` as its arguments. Raises
    ``UsageError`` for an empty or blank prompt or generation, ``DataError`` for text that the tokenizer does not give
    back.
    """
    for name, text in (("prompt", prompt), ("generation", generation)):
        if isinstance(text, str) and text and is_blank(text):
            raise UsageError(f"the {name} is blank ({text[:60]!r}): nothing in it can be explained")
    prompt_ids, user, user_text, user_offsets = _encode_prompt(tokenizer, prompt, chat, chat_args)
    if not prompt_ids:
        raise UsageError("the prompt has no tokens; the first generated token needs at least one before it")
    text, ids, offsets = _encode_generation(tokenizer, generation)
    eos = tokenizer.eos_token_id
    tokens = _pieces(text, offsets)
    if eos is not None:
        ids, tokens = [*ids, eos], [*tokens, str(tokenizer.eos_token)]
        offsets = [*offsets, (len(text), len(text))]
    return Passage(
        prompt_ids=tuple(prompt_ids),
        generation_ids=tuple(ids),
        user=tuple(user),
        user_text=user_text,
        user_tokens=tuple(_pieces(user_text, user_offsets)),
        user_offsets=tuple(user_offsets),
        generation_text=text,
        generation_tokens=tuple(tokens),
        generation_offsets=tuple(offsets),
        eos_id=eos,
        ends_with_eos=eos is not None,
    )


def passage_of(model: LanguageModel, prompt: Prompt, generation: str | Sequence[int], *, chat: bool) -> Passage:
    """The passage as ``model`` reads it: its tokenizer, its chat settings, its context window.

    Raises what :func:`encode_passage` raises, and ``ContextError`` for a passage that is longer than the model reads.
    """
    passage = encode_passage(model.tokenizer, prompt, generation, chat=chat, chat_args=model.chat_settings.arguments)
    window, tokens = model.context_window, len(passage.ids)
    if window is not None and tokens > window:
        what = "the prompt with its generation"
        raise ContextError(beyond_context(what, tokens, model.name, window, "shorten the prompt"))
    return passage


def _encode_prompt(
    tokenizer: Tokenizer, prompt: Prompt, chat: bool, chat_args: Mapping[str, object] | None
) -> tuple[list[int], list[int], str, list[tuple[int, int]]]:
    if not isinstance(prompt, str) and (not prompt or not isinstance(prompt[0], Mapping)):
        ids = _checked_ids(prompt, "prompt")
        text, offsets = _decoded(tokenizer, ids)
        return ids, list(range(len(ids))), text, offsets
    if isinstance(prompt, str) and not chat:
        ids, offsets = encode_text(tokenizer, prompt, "prompt")
        return ids, list(range(len(ids))), prompt, offsets
    formatted, start, user_text = _templated(tokenizer, prompt, chat_args)
    ids, offsets = encode_text(tokenizer, formatted, "prompt in its chat template")
    stop = start + len(user_text)
    user = [index for index, (first, last) in enumerate(offsets) if first < stop and last > start]
    local = [(max(offsets[index][0] - start, 0), min(offsets[index][1] - start, len(user_text))) for index in user]
    return ids, user, user_text, local


def _templated(tokenizer: Tokenizer, prompt: Any, chat_args: Mapping[str, object] | None) -> tuple[str, int, str]:
    """The formatted prompt, the character at which the user's text starts in it, and that text as the template has it.

    The place is found by rendering the template once more around a placeholder, so a user's text that also occurs
    elsewhere (or merges with its neighbours) is never mistaken.
    """
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else [dict(turn) for turn in prompt]
    last = max((i for i, turn in enumerate(messages) if turn.get("role") == "user"), default=None)
    if last is None:
        raise UsageError("the chat messages have no turn with the role 'user', so there is nothing to explain")
    if not getattr(tokenizer, "chat_template", None):
        raise UsageError("chat=True, but this tokenizer has no chat template; call it with chat=False")
    text = messages[last]["content"]
    messages_with_hole = [{**turn, "content": _PLACEHOLDER} if i == last else turn for i, turn in enumerate(messages)]
    template = ChatTemplate(tokenizer, chat_args)
    formatted, holed = (template.render(turns) for turns in (messages, messages_with_hole))
    before, _, after = holed.partition(_PLACEHOLDER)
    for candidate in (text, text.strip()):
        if formatted == before + candidate + after:
            return formatted, len(before), candidate
    raise DataError("the chat template rewrites the user's text, so its tokens cannot be located in the prompt")


def _encode_generation(
    tokenizer: Tokenizer, generation: str | Sequence[int]
) -> tuple[str, list[int], list[tuple[int, int]]]:
    if isinstance(generation, str):
        eos = tokenizer.eos_token
        text = generation.removesuffix(eos) if eos else generation
        ids, offsets = encode_text(tokenizer, text, "generation")
    else:
        ids = _checked_ids(generation, "generation")
        if ids and ids[-1] == tokenizer.eos_token_id:
            ids = ids[:-1]
        text, offsets = _decoded(tokenizer, ids)
    if not ids:
        raise UsageError("the generation has no tokens besides the end-of-text token, so there is nothing to explain")
    return text, ids, offsets


def _checked_ids(ids: Sequence[Any], name: str) -> list[int]:
    try:
        return [int(index) for index in ids]
    except (TypeError, ValueError):
        raise UsageError(f"{name} is {ids!r}; it must be text, token ids, or chat messages") from None


def encode_text(tokenizer: Tokenizer, text: str, name: str) -> tuple[list[int], list[tuple[int, int]]]:
    """Token ids and character offsets of a text; ``DataError`` where decoding them does not give the text back."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(f"the {name} has no UTF-8 form: character {error.start} is {text[error.start]!r}") from None
    if tells_offsets(tokenizer):
        encoded = encode_texts(tokenizer, [text])[0]
        ids, offsets = list(encoded.ids), list(encoded.offsets)
        back = _decode(tokenizer, ids)
    else:
        ids = list(tokenizer(text, add_special_tokens=False)["input_ids"])
        back, offsets = _decoded(tokenizer, ids)
    if back.lstrip(" ") != text.lstrip(" "):
        at = next((i for i, (a, b) in enumerate(zip(back, text, strict=False)) if a != b), min(len(back), len(text)))
        raise DataError(
            f"the tokenizer cannot round-trip the {name}: at character {at} it gives {back[at : at + 12]!r} "
            f"where the text has {text[at : at + 12]!r}; use text that this model's vocabulary covers"
        )
    return ids, offsets


def _decode(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))


def _decoded(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, list[tuple[int, int]]]:
    """Text of token ids and the offsets in it; a token that ends inside a character takes none of it yet."""
    text = _decode(tokenizer, ids)
    offsets, before = [], 0
    for count in range(1, len(ids) + 1):
        grown = _decode(tokenizer, ids[:count])
        end = before if grown.endswith("\ufffd") and not text.startswith(grown) else max(before, len(grown))
        offsets.append((before, end))
        before = end
    return text, offsets


def _pieces(text: str, offsets: Sequence[tuple[int, int]]) -> list[str]:
    """The text cut at the offsets, gaps given to the following token and the tail to the last; joins to the text."""
    pieces, before = [], 0
    for index, (_, stop) in enumerate(offsets):
        end = len(text) if index == len(offsets) - 1 else max(before, stop)
        pieces.append(text[before:end])
        before = end
    return pieces
