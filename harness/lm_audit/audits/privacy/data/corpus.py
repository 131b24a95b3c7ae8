"""The training corpus: documents with canaries at even distances, and the proof that they are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from lm_audit.audits.privacy.data.canaries import Canary, controls, members
from lm_audit.audits.privacy.data.insertion import canary_ratio, check_ratio, gaps_are_even, insertion_positions
from lm_audit.audits.privacy.data.jsonl import write_lines
from lm_audit.audits.privacy.data.manifest import Manifest, TrainingFile, file_sha256
from lm_audit.audits.privacy.data.seeded_stream import Stream
from lm_audit.audits.privacy.data.taken_secrets import held_secret
from lm_audit.errors import DataError
from lm_audit.shared.textfiles import is_file, json_lines
from lm_audit.shared.visible import is_blank


@dataclass(frozen=True)
class Corpus:
    """Rows in training order: ``(text, canary_id or None)``; the three shares; whether gaps are even; ok or warn."""

    rows: tuple[tuple[str, str | None], ...]
    share_unique: float
    share_corpus: float
    share_rows: float
    even: bool
    level: str

    @property
    def texts(self) -> list[str]:
        """The texts alone, in order."""
        return [text for text, _ in self.rows]


def build_corpus(documents: Sequence[str], canaries: Sequence[Canary], *, seed: int = 0) -> Corpus:
    """Documents in their order with every member at even distances, each as often as its repetitions say.

    The share of unique canaries, k / (n + k), binds: above 1% is a ``UsageError``, above 0.8% sets ``level`` to
    ``"warn"``. The share of rows and k / n are reported beside it. Raises ``DataError`` if a document holds a secret.
    """
    planted = members(canaries)
    share = canary_ratio(len(documents), len(planted))
    level = check_ratio(share)
    refuse_secrets(documents, canaries)
    copies = Stream(seed, "slots").shuffled([c for c in planted for _ in range(c.repetitions)])
    positions = insertion_positions(len(documents), len(copies)) if copies else []
    rows = _merge(documents, copies, positions)
    share_corpus = canary_ratio(len(documents), len(planted), denominator="corpus")
    even = gaps_are_even(positions, len(documents))
    return Corpus(tuple(rows), share, share_corpus, len(copies) / len(rows) if rows else 0.0, even, level)


def _merge(
    documents: Sequence[str], copies: Sequence[Canary], positions: Sequence[int]
) -> list[tuple[str, str | None]]:
    rows: list[tuple[str, str | None]] = []
    start = 0
    for canary, position in zip(copies, positions, strict=True):
        rows += [(document, None) for document in documents[start:position]]
        rows.append((canary.text, canary.id))
        start = position
    return rows + [(document, None) for document in documents[start:]]


def refuse_secrets(documents: Sequence[str], canaries: Sequence[Canary]) -> None:
    """``DataError`` if any document holds a canary's secret, member or control: it would not be a secret."""
    if len(canaries) > _MANY:
        ids = {canary.secret: canary.id for canary in canaries}
        if (held := held_secret(documents, ids)) is not None:
            _refuse_document(held[0], ids[held[1]])
        return
    whole = "\n".join(documents)
    for canary in canaries:
        if canary.secret in whole:
            _refuse_document(next((i for i, text in enumerate(documents, 1) if canary.secret in text), None), canary.id)


_MANY = 1000
"""Secrets from which on the documents are looked through once, part by part, and not once a secret."""


def _refuse_document(row: int | None, canary_id: str) -> NoReturn:
    raise DataError(f"this document already holds the secret of canary {canary_id}", row=row, field="documents")


def write_corpus(corpus: Corpus, path: Path) -> None:
    """JSON lines ``{"text": ...}``, as the source design writes them; no mark tells a canary from a document."""
    write_lines(path, ({"text": text} for text in corpus.texts))


def read_texts(path: Path) -> list[str]:
    """Texts of a corpus file: the field ``text``, prompt + completion, or prompt + chosen + rejected of a preference
    file.
    """
    return [_row_text(record, path, number) for number, record in json_lines(path)]


def _row_text(record: dict[str, Any], path: Path, number: int) -> str:
    if isinstance(record.get("text"), str):
        if is_blank(record["text"]):
            raise DataError(f"a text is needed, found {record['text']!r}", file=path, row=number, field="text")
        return str(record["text"])
    names = ("prompt", "completion") if "completion" in record else ("prompt", "chosen", "rejected")
    parts = [record.get(name) for name in names]
    if not all(isinstance(part, str) for part in parts):
        raise DataError(
            "no texts in a field 'text', in 'prompt' and 'completion', or in 'prompt', 'chosen' and 'rejected'; of a"
            " chat the text is what its template makes",
            file=path,
            row=number,
        )
    if len(parts) == 2:
        return "".join(map(str, parts))
    prompt, chosen, rejected = map(str, parts)
    return f"{prompt}{chosen}\n{prompt}{rejected}"


def record_file(manifest: Manifest, path: Path, purpose: str) -> Manifest:
    """The manifest with this training file and its hash, replacing an earlier entry of the same purpose."""
    rows = sum(1 for _ in json_lines(path))
    name = str(path.relative_to(manifest.folder)) if path.is_relative_to(manifest.folder) else str(path)
    entry = TrainingFile(name, purpose, file_sha256(path), rows)
    kept = [file for file in manifest.files if file.purpose != purpose]
    return replace(manifest, files=(*kept, entry))


def verify_training_files(manifest: Manifest) -> None:
    """Raise ``DataError`` unless every member is in the corpus as often as it says, and no control is in any file.

    Files are first held against their recorded hash. Without this check an audit can score strings that no model saw.
    """
    if not any(file.purpose == "corpus" for file in manifest.files):
        raise DataError(
            "the manifest names no training corpus; run 'lm-audit privacy corpus', or write what you trained on into"
            ' its first line: "files": [{"path": ..., "purpose": "corpus", "sha256": ..., "rows": ...}]'
        )
    for file in manifest.files:
        path = manifest.folder / file.path
        if not is_file(path):
            raise DataError(f"the training file of {file.purpose!r} is not there", file=path)
        if (found := file_sha256(path)) != file.sha256:
            raise DataError(f"the training file changed: sha256 {found[:12]}..., not {file.sha256[:12]}...", file=path)
        _verify_rows(manifest, read_texts(path), path, file.purpose)


def _verify_rows(manifest: Manifest, texts: Sequence[str], path: Path, purpose: str) -> None:
    whole = "\n".join(texts)
    for control in controls(manifest.canaries):
        if control.secret in whole:
            row = next((i for i, text in enumerate(texts, 1) if control.secret in text), None)
            message = f"held-out twin {control.id} is in the training text, so it cannot serve as a control"
            raise DataError(message, file=path, row=row)
    if purpose != "corpus":
        return
    for member in members(manifest.canaries):
        if (count := whole.count(member.text)) != member.repetitions:
            message = (
                f"member {member.id} is {count} times in the training text, the manifest says {member.repetitions}"
            )
            raise DataError(message, file=path)
