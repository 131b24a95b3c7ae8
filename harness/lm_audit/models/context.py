"""How long a text a model takes, read from its configuration; the one place that knows, asked by every caller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

_LENGTHS = (
    *("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_sequence_length", "context_length"),
    *("max_context_length", "seq_length", "max_target_positions"),
)
_LAST = "model_max_length"
_PARTS = ("text_config", "llm_config", "language_config", "language_model_config", "thinker_config", "decoder")
"""Where configurations of wrapped models (with vision, audio, code of their own) keep the language model's."""

_AFTER_PADDING = frozenset(
    [
        "roberta",
        "camembert",
        "xlm-roberta",
        "xlm-roberta-xl",
        "roberta-prelayernorm",
        "data2vec-text",
        "xmod",
        "longformer",
    ]
)
_NO_WINDOWS = {"max_window_layers"}  # a number of layers


def text_config(config: object) -> Any:
    """The language model's part of a configuration, itself a configuration."""
    inner = config.get_text_config(decoder=True) if hasattr(config, "get_text_config") else config
    for name in _PARTS:
        part = getattr(inner, name, None)
        if isinstance(part, Mapping):
            part = Attributes(part)
        if part is not None and not isinstance(part, str) and _stated_length(inner) is None:
            return text_config(part)
    return inner


def context_window(config: object) -> int | None:
    """The largest number of input tokens; None where nothing bounds it (state-space models, ALiBi).

    Rotary scaling lengthens it: with YaRN to factor x original length, as model cards ask for without touching
    ``max_position_embeddings`` (Peng et al. 2023), with dynamic NTK to factor x ``max_position_embeddings``. Linear
    scaling, llama3 and LongRoPE are written beside a ``max_position_embeddings`` that is long already, and lengthen
    only where it still equals the original length that they state.
    """
    text = text_config(config)
    stated = _stated_length(text)
    if stated is None or _bounded_by_nothing(text):
        return None
    stated -= _rows_before_the_first(text)
    return max([stated, *(_scaled_length(kind, text, stated) for kind in rope_kinds(text))])


def attention_reach(config: object) -> int | None:
    """The shortest attention window or chunk: longer texts must keep their own positions in the batch."""
    text = text_config(config)
    lengths = [
        length
        for name, value in text.to_dict().items()
        if ("window" in name or "attention_chunk" in name) and name not in _NO_WINDOWS
        for length in (value if isinstance(value, list | tuple) else [value])
        if isinstance(length, int) and not isinstance(length, bool) and length > 0
    ]
    return min(lengths, default=None)


def uniform_length(config: object) -> int | None:
    """Length beyond which a token's logits are the model's own in a plain forward pass over its text alone.

    With dynamic NTK and LongRoPE the rotation depends on the longest text of the batch. Where an indexer chooses which
    tokens are attended to (DeepSeek's sparse attention, MiniMax M3's blocks), equal marks are told apart by how many
    others there are, and blocks begin by the place in the batch.
    """
    text = text_config(config)
    lengths = [*(_switching_length(kind, text) for kind in rope_kinds(text)), _chosen_length(text)]
    return min((n for n in lengths if n), default=None)


def changes_at_every_step(config: object) -> bool:
    """Whether beyond :func:`uniform_length` a further token changes what was read before (dynamic NTK, an indexer)."""
    text = text_config(config)
    return _chosen_length(text) is not None or any(_rope_type(kind) == "dynamic" for kind in rope_kinds(text))


def rope_kinds(text: object) -> Iterator[Mapping[str, Any]]:
    """The rotary settings of a configuration, one mapping for each kind of layer that has its own."""
    rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None) or {}
    if isinstance(rope, Mapping):
        yield rope
        yield from (value for value in rope.values() if isinstance(value, Mapping))


def window_hint(config: object) -> str:
    """What to set where a longer context was trained but is not stated; empty where nothing suggests that."""
    text = text_config(config)
    for kind in rope_kinds(text):
        if _rope_type(kind) == "linear" and "original_max_position_embeddings" not in kind:
            return (
                f"; its config scales rotary positions by {kind.get('factor')}: if max_position_embeddings"
                " is the length before scaling, set it to the length that the model was trained for"
            )
    return ""


def _stated_length(text: object) -> int | None:
    values = [value for name in _LENGTHS if _is_length(value := getattr(text, name, None))]
    if not values:
        last = getattr(text, _LAST, None)
        return last if _is_length(last) else None
    # Beside a scaled rotation some configs keep the short length and state the long one as max_sequence_length.
    longer = getattr(text, "max_sequence_length", None)
    first: int = values[0]
    return max(first, longer) if isinstance(longer, int) and any(rope_kinds(text)) else first


def _is_length(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _bounded_by_nothing(text: object) -> bool:
    """ALiBi that is computed for whatever length comes; MPT's is a table of ``max_seq_len``."""
    kind = getattr(text, "model_type", "")
    return kind == "bloom" or (bool(getattr(text, "alibi", False)) and kind != "mpt")


def _rows_before_the_first(text: object) -> int:
    """Rows of a position table that no token gets: RoBERTa and its kin count positions from behind the padding's id."""
    padding = getattr(text, "pad_token_id", None)
    return padding + 1 if getattr(text, "model_type", "") in _AFTER_PADDING and isinstance(padding, int) else 0


def _rope_type(kind: Mapping[str, object]) -> str:
    return str(kind.get("rope_type") or kind.get("type") or "default")


def _scaled_length(kind: Mapping[str, Any], text: object, stated: int) -> int:
    name, factor = _rope_type(kind), kind.get("factor")
    if not isinstance(factor, int | float) or factor <= 1:
        return stated
    original = kind.get("original_max_position_embeddings") or getattr(text, "original_max_position_embeddings", None)
    if name == "yarn":
        return int(factor * (original or stated))
    if name == "dynamic":
        return int(factor * stated)
    if name == "longrope" and original is None:
        original = stated  # as transformers fills it in, so that files and loaded models tell one length
    return int(factor * stated) if original == stated else stated


def _switching_length(kind: Mapping[str, Any], text: object) -> int | None:
    name = _rope_type(kind)
    if name == "dynamic":
        return _stated_length(text)
    if name != "longrope" or kind.get("short_factor") == kind.get("long_factor"):
        return None
    return (
        kind.get("original_max_position_embeddings")
        or getattr(text, "original_max_position_embeddings", None)
        or _stated_length(text)
    )


def _chosen_length(text: object) -> int | None:
    """How many tokens an indexer chooses: shorter texts are attended to as a whole."""
    tokens, blocks = getattr(text, "index_topk", None), getattr(text, "index_topk_blocks", None)
    size = getattr(text, "index_block_size", None)
    if _is_length(blocks) and _is_length(size):
        return blocks * size
    return tokens if _is_length(tokens) else None


class Attributes:
    """A mapping read by attribute, for configurations that a checkpoint's own code left as plain dictionaries."""

    def __init__(self, values: Mapping[str, object]):
        self._values = values

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(name) from None

    def to_dict(self) -> dict[str, Any]:
        return dict(self._values)
