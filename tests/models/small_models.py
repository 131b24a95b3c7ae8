"""Model folders for tests: a Llama of a few thousand random parameters with the byte tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lm_audit.models.causal_module import DecoderModule


def small_llama(seed: int = 0, *, context: int = 64, vocabulary: int = 259, **settings: Any) -> DecoderModule:
    """A randomly initialised Llama on CPU in float32."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = LlamaConfig(vocab_size=vocabulary, max_position_embeddings=context, **{**shape, **ids, **settings})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = LlamaForCausalLM(config)
    module.train(False)
    return module


def save_small_llama(folder: Path, seed: int = 0, *, dtype: str = "float32", **settings: Any) -> Path:
    """The same as a model folder with weights in ``dtype``."""
    import torch

    from lm_audit.models.text.byte_tokenizer import byte_tokenizer

    module = small_llama(seed, **settings).to(getattr(torch, dtype))
    module.save_pretrained(folder)
    byte_tokenizer(module.config.max_position_embeddings).save_pretrained(folder)
    return folder


def edit_json(path: Path, **changes: Any) -> None:
    """Set keys of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def put_in_hub_cache(cache: Path, repo: str, revisions: dict[str, Path]) -> None:
    """Lay folders out as ``huggingface_hub`` caches them: blobs by content hash, snapshots of links, refs to commits.

    ``revisions``: reference name -> the folder whose files it shows.
    """
    import hashlib

    root = cache / ("models--" + repo.replace("/", "--"))
    for name, folder in revisions.items():
        commit = hashlib.sha1(f"{repo} {name}".encode()).hexdigest()
        (root / "refs" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "refs" / name).write_text(commit)
        snapshot = root / "snapshots" / commit
        snapshot.mkdir(parents=True)
        (root / "blobs").mkdir(exist_ok=True)
        for file in folder.iterdir():
            content = file.read_bytes()
            blob = root / "blobs" / hashlib.sha256(content).hexdigest()
            blob.write_bytes(content)
            (snapshot / file.name).symlink_to(Path("../../blobs") / blob.name)
