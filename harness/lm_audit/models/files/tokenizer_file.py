"""A model folder's tokenizer files, checked as far as that goes without transformers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.models.files.json_file import one_line, read_json, refuse_huge
from lm_audit.models.files.unchanged import once_unchanged
from lm_audit.shared.textfiles import is_file

_SPECIAL_IDS = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")
_PACKAGES = {
    "biogpt": "sacremoses",
    "flaubert": "sacremoses",
    "xlm": "sacremoses",
    "cpmant": "rjieba",
    "roformer": "rjieba",
}
"""What transformers' tokenizers of some makes import when they are made."""
_OBJECTS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "generation_config.json")


def check_tokenizer(folder: Path, kind: object = None) -> None:
    """``ModelError`` naming the file that holds no tokenizer, no JSON object or no text where one belongs, or what must
    be installed to read it; ``kind``: the model's, which decides where no file names a tokenizer's class.
    """
    _check_packages(folder, kind)
    for name in _OBJECTS:
        if is_file(folder / name):
            values = read_json(folder / name)
            check_special_ids(values, folder / name)
            _check_length(values.get("model_max_length"), folder / name)
    path = folder / "tokenizer.json"
    if is_file(path):
        _check_readable(path)
    template = folder / "chat_template.jinja"
    if is_file(template):
        refuse_huge(template)
        try:
            template.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ModelError(f"{template} is no text in UTF-8: {one_line(error)}") from error


def _check_packages(folder: Path, kind: object) -> None:
    path = folder / "tokenizer_config.json"
    stated = (read_json(path).get("tokenizer_class") if is_file(path) else None) or kind
    make = str(stated).casefold().removesuffix("fast").removesuffix("tokenizer")
    package = _PACKAGES.get(make)
    if package is not None and find_spec(package) is None:
        raise ModelError(f"{folder}: its tokenizer ({stated}) is read with {package}: pip install {package}")


def check_special_ids(values: Mapping[str, object], path: Path) -> None:
    """``ModelError`` for ids of special tokens that are none; several end a text in some models, -1 stands for none."""
    for name in _SPECIAL_IDS:
        value = values.get(name)
        for number in value if isinstance(value, list) else [value]:
            if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < -1):
                raise ModelError(f"{path}: {name} is {value!r:.60}; expected the number of a token, or several")


def _check_length(value: Any, path: Path) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and value > 0):  # 1e30 stands for no end, NaN for nothing
        raise ModelError(f"{path}: model_max_length is {value!r:.60}; expected a number above 0")


def _refuse_shared_ids(content: Mapping[str, object], path: Path) -> None:
    """``ModelError`` where two pieces of text are one token: one of them would be read as the other."""
    model = content.get("model")
    vocabulary = model.get("vocab") if isinstance(model, Mapping) else None
    if not isinstance(vocabulary, Mapping):
        return
    owners: dict[object, str] = {}
    for token, number in vocabulary.items():
        if isinstance(number, int) and owners.setdefault(number, token) != token:
            raise ModelError(f"{path}: {owners[number]!r:.40} and {token!r:.40} are both the token {number}")


@once_unchanged
def _check_readable(path: Path) -> None:
    """Read the file as transformers will."""
    from tokenizers import Tokenizer

    content = read_json(path)
    _refuse_shared_ids(content, path)
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # what panics in Rust is no Exception
        raise ModelError(f"{path} is no tokenizer that can be read: {one_line(error)}") from error
    _refuse_moved(content, tokenizer, path)
    for token, number in _framing(content.get("post_processor")):
        if (own := tokenizer.token_to_id(token)) != number:
            raise ModelError(
                f"{path}: its post_processor puts the token {number} for {token!r:.40}, which is {own}; texts would be"
                " framed by another token"
            )


def _framing(processor: object) -> Iterator[tuple[str, int]]:
    """Text and number of each token that a post-processor puts round a text."""
    if isinstance(processor, list):
        for inner in processor:
            yield from _framing(inner)
    elif isinstance(processor, Mapping):
        yield from _framing(processor.get("processors"))
        special = processor.get("special_tokens")
        for one in special.values() if isinstance(special, Mapping) else ():
            yield from zip(one["tokens"], one["ids"], strict=False)
        for name in ("sep", "cls"):
            pair = processor.get(name)
            if isinstance(pair, list) and len(pair) == 2:
                yield pair[0], pair[1]


def _refuse_moved(content: Mapping[str, Any], tokenizer: Any, path: Path) -> None:
    """``ModelError`` for an added token whose number is taken, or leaves a gap: the library gives it the next one."""
    for added in content.get("added_tokens") or ():
        number, token = added["id"], added["content"]
        if (read := tokenizer.token_to_id(token)) != number:
            owner = tokenizer.id_to_token(number)
            taken = f", which is {owner!r:.40}" if owner is not None else ""
            raise ModelError(
                f"{path} adds {token!r:.40} as the token {number}{taken}; it would be read as {read}: set its number"
                " right"
            )
