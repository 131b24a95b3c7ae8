"""The data of a four-stage run: canaries, corpus, preferences and the manifest, as files that each step can restart
from.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from lm_audit.audits.privacy.data.canaries import Canary, flip_canaries, plant_canaries, tiers
from lm_audit.audits.privacy.data.corpus import Corpus, build_corpus, read_texts, record_file, write_corpus
from lm_audit.audits.privacy.data.documents import read_documents, sample_documents
from lm_audit.audits.privacy.data.manifest import Manifest, read_manifest, write_manifest
from lm_audit.audits.privacy.data.preferences import build_preferences, write_preferences
from lm_audit.audits.privacy.data.seeded_stream import Stream
from lm_audit.audits.privacy.stages.config import StagesConfig
from lm_audit.models.toy.tiny import base_text
from lm_audit.models.toy.tiny_text import decoy_text, seeded_text

MANIFEST, CORPUS = "manifest.jsonl", "corpus.jsonl"
WITHOUT, WITH = "preferences_no_canary.jsonl", "preferences_with_canary.jsonl"
_SFT_SEED = 1_000_003
"""Added to the seed for the SFT text, so that it is another draw than the base model's."""


def prepare(config: StagesConfig, folder: Path) -> Manifest:
    """Write what is missing of canaries, corpus and preferences into ``folder``; the manifest that names them all."""
    manifest = make_canaries(config, folder / MANIFEST)
    if not (folder / CORPUS).is_file() or "corpus" not in _purposes(manifest):
        manifest, _ = make_corpus(config, manifest, folder)
    if not {"dpo_no_canary", "dpo_with_canary"} <= _purposes(manifest):
        manifest = make_preferences(config, manifest, folder)
    return manifest


def make_canaries(config: StagesConfig, path: Path) -> Manifest:
    """The manifest at ``path``, drawn and written if it is not there."""
    if path.is_file():
        return read_manifest(path)
    manifest = Manifest(tuple(draw_canaries(config)), config.seed, config.assignment, folder=path.parent)
    write_manifest(manifest, path)
    return manifest


def draw_canaries(config: StagesConfig) -> list[Canary]:
    """Members and held-out twins as the config asks."""
    if config.assignment == "coins":
        total = config.members + config.controls
        return flip_canaries(total, seed=config.seed, family=config.family, repetitions=config.repetitions[0])
    counts = tiers(config.members, config.repetitions)
    return plant_canaries(counts, controls=config.controls, seed=config.seed, family=config.family)


def make_corpus(config: StagesConfig, manifest: Manifest, folder: Path) -> tuple[Manifest, Corpus]:
    """Write the corpus and record it in the manifest."""
    corpus = build_corpus(ordinary_documents(config), manifest.canaries, seed=config.seed)
    write_corpus(corpus, folder / CORPUS)
    manifest = record_file(manifest, folder / CORPUS, "corpus")
    write_manifest(manifest, folder / MANIFEST)
    return manifest, corpus


def make_preferences(
    config: StagesConfig, manifest: Manifest, folder: Path, wanted: Collection[str] = (WITHOUT, WITH)
) -> Manifest:
    """Write the wanted preference files from the corpus's ordinary documents and record them in the manifest."""
    without, with_canaries = build_preferences(
        corpus_documents(manifest, folder / CORPUS),
        manifest.canaries,
        seed=config.seed,
        pairs_per_canary=config.pairs_per_canary,
        num_pairs=config.pairs,
        style=config.pair_style,
    )
    for name, rows, purpose in ((WITHOUT, without, "dpo_no_canary"), (WITH, with_canaries, "dpo_with_canary")):
        if name in wanted:
            write_preferences(rows, folder / name)
            manifest = record_file(manifest, folder / name, purpose)
    write_manifest(manifest, folder / MANIFEST)
    return manifest


def ordinary_documents(config: StagesConfig) -> list[str]:
    """The documents of the SFT corpus before canaries: from files, or seeded sentences and decoys."""
    if config.documents_path is not None:
        return sample_documents(read_documents(config.documents_path), config.documents, seed=config.seed)
    seen = base_text(config.seed, config.tiny)
    fresh = seeded_text(config.documents - config.decoys, config.seed + _SFT_SEED, exclude=seen)
    rows = fresh + decoy_text(config.decoys, config.seed + _SFT_SEED)
    return Stream(config.seed, "corpus order").shuffled(rows)


def corpus_documents(manifest: Manifest, path: Path) -> list[str]:
    """The rows of a corpus that are no canary."""
    planted = {canary.text for canary in manifest.members}
    return [text for text in read_texts(path) if text not in planted]


def comparison_documents(manifest: Manifest, n: int) -> list[str]:
    """``n`` ordinary training documents, spread evenly: the source design's negatives."""
    entry = next((file for file in manifest.files if file.purpose == "corpus"), None)
    if entry is None:
        return []
    documents = corpus_documents(manifest, manifest.folder / entry.path)
    return _spread(documents, n)


def _spread(items: Sequence[str], n: int) -> list[str]:
    count = min(n, len(items))
    return [items[i * len(items) // count] for i in range(count)]


def _purposes(manifest: Manifest) -> set[str]:
    return {file.purpose for file in manifest.files if (manifest.folder / file.path).is_file()}
