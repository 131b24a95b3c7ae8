"""A model folder's tokenizer files, checked as far as that goes without transformers."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from lm_audit.errors import ModelError
from lm_audit.models.files.json_file import one_line, read_json
from lm_audit.textfiles import is_file

_OBJECTS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "generation_config.json")


def check_tokenizer(folder: Path) -> None:
    """``ModelError`` naming the file that holds no tokenizer, or no JSON object where one belongs."""
    for name in _OBJECTS:
        if is_file(folder / name):
            read_json(folder / name)
    path = folder / "tokenizer.json"
    if is_file(path):
        read_json(path)
        state = path.stat()
        _read(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=64)
def _read(path: Path, modified: int, size: int) -> None:
    """Read the file as transformers will; remembered for files that are right."""
    from tokenizers import Tokenizer

    try:
        Tokenizer.from_file(str(path))
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # what panics in Rust is no Exception
        raise ModelError(f"{path} is no tokenizer that can be read: {one_line(error)}") from error
