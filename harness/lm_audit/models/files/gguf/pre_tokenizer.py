"""How byte-level BPE of a GGUF file splits text before it merges: llama.cpp's list of ``tokenizer.ggml.pre``.

The names and what they stand for are those of llama.cpp's ``src/llama-vocab.cpp``. Each expression splits what the ones
before it left; a match is a piece by itself. Where llama.cpp only comes near to a model's own expression (words within
``fooBar``), the model's own is taken.
"""

from __future__ import annotations

from typing import Any

from lm_audit.errors import ModelError

_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_PUNCTUATION = r"[\p{P}\$\+<=>\^~\|`]+"


def _modern(digits: str, tail: str = _TAIL) -> tuple[str, ...]:
    return (rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{tail}",)


def _cased(ending: str, digits: str, *, han: bool = False) -> tuple[str, ...]:
    """Words end where a capital follows a small letter; with ``han``, Chinese ones are pieces by themselves."""
    without = r"&&[^\p{Han}]" if han else ""
    upper, lower = (
        rf"[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}{without}]",
        rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}{without}]",
    )
    start = r"[^\r\n\p{L}\p{N}]?"
    words = f"{start}{upper}*{lower}+{ending}|{start}{upper}+{lower}*{ending}"
    first, behind = (r"\p{Han}+|", r"\r\n") if han else ("", r"\r\n/")
    return (rf"{first}{words}|{digits}| ?[^\s\p{{L}}\p{{N}}]+[{behind}]*|{_TAIL}",)


_THREES = _modern(r"\p{N}{1,3}")
_ONES = _modern(r"\p{N}")
_MARKS = r"!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~"
_DEEPSEEK3 = (
    r"\p{N}{1,3}",
    r"[一-龥぀-ゟ゠-ヿ]+",
    rf"[{_MARKS}][A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_TAIL}",
)
_QWEN35 = (rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_TAIL}",)
_SEED = (rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_TAIL}",)
_BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"

_GROUPS: dict[tuple[str, ...], str] = {
    (_GPT2,): "gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de jina-v1-en jina-v2-code roberta-bpe gigachat a.x-4.0"
    " mellum modern-bert exaone4 mpt olmo jais trillion granite-docling",
    (r"\p{N}", _GPT2): "starcoder refact command-r smollm codeshell exaone minerva-7b",
    _THREES: "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano dbrx smaug-bpe glm4"
    " chatglm-bpe",
    _ONES: "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2",
    _modern(r"\p{N}", r"\s*[\r\n]|\s+(?!\S)|\s+"): "bailingmoe bailingmoe2 llada-moe",
    _QWEN35: "qwen35",
    _SEED: "seed-coder",
    _cased("", r"\p{N}"): "tekken",
    _cased(f"{_ENDINGS}?", r"\p{N}{1,3}"): "gpt-4o llama4 kanana2 talkie minimax-m2",
    _cased(f"{_ENDINGS}?", r"\p{N}{1,3}", han=True): "kimi-k2",
    _DEEPSEEK3: "deepseek-v3 hunyuan-dense joyai-llm",
    (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"): "deepseek-coder",
    (_PUNCTUATION, _GPT2, r"[0-9][0-9][0-9]"): "falcon",
    (r"\p{N}+", r"(?=(\d{3})+(?!\d))"): "superbpe",
    (_BLOOM,): "poro-chat bloom gpt3-finnish",
    (_BLOOM, r"\p{N}"): "viking",
    (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"): "default",
}
_SPLITS = {name: splits for splits, names in _GROUPS.items() for name in names.split()}

_BEGIN = (
    *("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"),
    "tekken",
)
"""Names for which llama.cpp puts BOS before a text where the file does not say."""


def check_pre(name: str | None, path: object) -> str:
    """The name, "default" where the file has none; ``ModelError`` for one that is not known here."""
    if name is not None and name not in _SPLITS:
        raise ModelError(
            f"{path}: tokenizer.ggml.pre is {name!r:.60}, a way to split text that is not known here;"
            " name the folder of the original model"
        )
    return name or "default"


def begins_with_bos(name: str) -> bool:
    """Whether llama.cpp adds BOS for such a tokenizer unless the file says otherwise."""
    return name in _BEGIN


def pre_tokenizer(name: str) -> Any:
    """The pre-tokenizer of ``tokenizers`` that splits as llama.cpp does under that name."""
    from tokenizers import Regex, pre_tokenizers

    splits = [pre_tokenizers.Split(Regex(pattern), behavior="isolated") for pattern in _SPLITS[name]]
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    return pre_tokenizers.Sequence([*splits, bytes_])
