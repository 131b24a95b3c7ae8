"""Which files of a folder hold a model's weights and its tokenizer."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from lm_audit.errors import ModelError
from lm_audit.models.files.json_file import listed, read_json, refuse_huge
from lm_audit.models.files.safetensors_file import TensorEntry, read_entries
from lm_audit.models.loading.identity.digests import weights_digest
from lm_audit.shared.textfiles import is_file

WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"

_SHARD = re.compile(r"(pytorch_)?model\b.*\.safetensors$")
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "tekken.json",
    "tokenizer_config.json",
)


_SETTINGS = (
    *_TOKENIZER_FILES,
    "config.json",
    "generation_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "merges.txt",
    WHOLE,
    INDEX,
)
"""What a model may do without, but not pass over where it is there and cannot be read."""


def refuse_dead_entries(folder: Path) -> None:
    """``ModelError`` for a link that leads nowhere, a folder, a pipe or endless settings in place of a model's file.

    transformers would take each for absent: a chat template whose blob was lost would be a model without one.
    """
    for name in _SETTINGS:
        path = folder / name
        if os.path.lexists(path) and not is_file(path):
            what = "a link that leads to no regular file" if path.is_symlink() else "no regular file"
            raise ModelError(f"{path} is {what}; restore it, or take it out of the folder")
        if name != WHOLE:
            refuse_huge(path)


def has_tokenizer(folder: Path) -> bool:
    """Whether a folder holds a tokenizer of its own."""
    return any(is_file(folder / name) for name in _TOKENIZER_FILES)


def has_whole_model(folder: Path) -> bool:
    """Whether a folder holds a model's weights, be they readable or not."""
    return any(is_file(folder / name) for name in (WHOLE, INDEX, "pytorch_model.bin", "pytorch_model.bin.index.json"))


def weight_files(folder: Path, named: object = None) -> tuple[tuple[Path, ...], tuple[TensorEntry, ...]]:
    """The safetensors files of the model in ``folder`` and all their tensors, as transformers chooses them.

    ``named``: the file or index that the config names itself (``transformers_weights``). Raises ``ModelError`` where
    there are none, a shard is absent, the index and the shards contradict each other, or a second model lies beside.
    """
    if named is not None:
        name = _plain_name(named, folder / "config.json")
        if not is_file(folder / name):
            raise ModelError(f"{folder / 'config.json'}: transformers_weights names {name}, which is not there")
        return _sharded(folder, name) if name.endswith(".index.json") else _whole(folder / name)
    if is_file(folder / WHOLE):
        found = _whole(folder / WHOLE)
        _refuse_another(folder, found)
        return found
    if not is_file(folder / INDEX):
        raise no_safetensors(folder, WHOLE)
    return _sharded(folder, INDEX)


def left_out(folder: Path, taken: Sequence[Path]) -> tuple[str, ...]:
    """Names of files of ``folder`` that look like weights of the model and are none of those ``taken``."""
    names = {path.name for path in taken}
    return tuple(sorted(path.name for path in folder.iterdir() if _SHARD.match(path.name) and path.name not in names))


def stale_shards(folder: Path, taken: Sequence[Path]) -> tuple[str, ...]:
    """Shards in the index of ``folder`` that are not there, where the weights in one file were taken."""
    if {path.name for path in taken} != {WHOLE} or not is_file(folder / INDEX):
        return ()
    return tuple(sorted(name for name in set(shard_map(folder).values()) if not is_file(folder / name)))


def _whole(path: Path) -> tuple[tuple[Path, ...], tuple[TensorEntry, ...]]:
    return (path,), tuple(read_entries(path))


def _sharded(folder: Path, index: str) -> tuple[tuple[Path, ...], tuple[TensorEntry, ...]]:
    places = shard_map(folder, index)
    missing = sorted(name for name in set(places.values()) if not is_file(folder / name))
    if missing or not places:
        raise ModelError(f"{folder / index} names files that are not there: {listed(missing) or 'it names none'}")
    files = tuple(folder / name for name in sorted(set(places.values())))
    held = [(file, entry) for file in files for entry in read_entries(file)]
    _check_places(folder / index, places, held)
    return files, tuple(entry for _, entry in held)


def _plain_name(named: object, path: Path) -> str:
    endings = (".safetensors", ".safetensors.index.json")
    if not isinstance(named, str) or Path(named).name != named or "\0" in named or not named.endswith(endings):
        raise ModelError(
            f"{path}: transformers_weights is {named!r:.80}; expected the name of a safetensors file, or of an index of"
            " such, beside it"
        )
    return named


def _refuse_another(folder: Path, whole: tuple[tuple[Path, ...], tuple[TensorEntry, ...]]) -> None:
    """``ModelError`` where shards of another model lie beside a whole one, which transformers would take in silence."""
    if not is_file(folder / INDEX):
        return
    names = set(shard_map(folder).values())
    if names <= {WHOLE} or not all(is_file(folder / name) for name in names):
        return
    files, entries = _sharded(folder, INDEX)
    if _shapes(entries) != _shapes(whole[1]) or weights_digest(files) != weights_digest(whole[0]):
        raise ModelError(
            f"{folder} holds two models: the weights in {WHOLE} are not those of the shards that {INDEX} names; take"
            " one of them out of the folder"
        )


def _shapes(entries: Iterable[TensorEntry]) -> set[tuple[str, str, tuple[int, ...]]]:
    return {(entry.name, entry.dtype, entry.shape) for entry in entries}


def shard_map(folder: Path, index: str = INDEX) -> dict[str, str]:
    """Tensor name -> file name, from the index of a sharded checkpoint; ``ModelError`` where that is damaged."""
    path = folder / index
    values = read_json(path)
    places = values.get("weight_map")
    if not isinstance(values.get("metadata"), dict):  # transformers reads it
        raise ModelError(f"{path} has no metadata; expected an object, be it empty")
    if not isinstance(places, dict):
        raise ModelError(f"{path}: weight_map is a {type(places).__name__}; expected tensor names and their files")
    for tensor, name in places.items():
        if not isinstance(name, str) or not name or Path(name).name != name or name in (".", "..") or "\0" in name:
            raise ModelError(
                f"{path}: the file of {tensor!r:.80} is {name!r:.80}; expected the name of a file beside it"
            )
    return places


def _check_places(index: Path, places: dict[str, str], held: list[tuple[Path, TensorEntry]]) -> None:
    found: dict[str, str] = {}
    for file, entry in held:
        if entry.name in found:
            raise ModelError(f"{index}: {file.name} and {found[entry.name]} both hold the tensor {entry.name!r:.120}")
        found[entry.name] = file.name
    wrong = sorted(name for name, place in places.items() if found.get(name) != place)
    if wrong:
        raise ModelError(f"{index} places tensors where they are not: {listed(wrong)}")


def no_safetensors(folder: Path, wanted: str) -> ModelError:
    """Why there is no file ``wanted`` to load, as an error."""
    pickles = sorted(path.name for pattern in _PICKLES for path in folder.glob(pattern))
    if pickles:
        return ModelError(
            f"{folder} holds only pickle weights ({pickles[0]}), which can run code when read and are never loaded;"
            f" save them again as {wanted}"
        )
    other = sorted(path.name for path in folder.glob("*.safetensors"))
    return ModelError(f"{folder} has no {wanted}" + (f" (there: {', '.join(other[:3])})" if other else ""))
