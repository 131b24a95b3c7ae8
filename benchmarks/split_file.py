"""Split a large file into parts below a size limit, and join them again with a check.

python benchmarks/split_file.py split FILE FOLDER [--parts 2]
python benchmarks/split_file.py join FILE FOLDER [FOLDER ...]
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path


def split(source: Path, folder: Path, parts: int) -> None:
    """Write ``part-0`` ... and ``parts.json`` with the SHA-256 of the whole."""
    folder.mkdir(parents=True, exist_ok=True)
    content = source.read_bytes()
    size = -(-len(content) // parts)
    for index in range(parts):
        (folder / f"part-{index}").write_bytes(content[index * size : (index + 1) * size])
    record = {"parts": parts, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    (folder / "parts.json").write_text(json.dumps(record), encoding="utf-8")


def join(target: Path, folders: list[Path]) -> None:
    """Put the parts, wherever they lie, together; ends with an error unless the SHA-256 is that of the original."""
    found = {path.name: path for folder in folders for path in folder.iterdir()}
    record = json.loads(found["parts.json"].read_text(encoding="utf-8"))
    content = b"".join(found[f"part-{index}"].read_bytes() for index in range(record["parts"]))
    if hashlib.sha256(content).hexdigest() != record["sha256"]:
        sys.exit(f"the parts do not give the file of {record['bytes']} bytes back")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


if __name__ == "__main__":
    command, first, second, *rest = sys.argv[1:]
    if command == "split":
        split(Path(first), Path(second), int(rest[1]) if rest else 2)
    else:
        join(Path(first), [Path(second), *map(Path, rest)])
