"""Hub ids, against a cache laid out as ``huggingface_hub`` lays it out; never against the network."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
import torch

from lm_audit.errors import ModelError
from lm_audit.models import check_spec, load_model, load_tokenizer
from lm_audit.models.commands import run
from lm_audit.models.files.hub import cached_revisions
from tests.models.pretrained import llama
from tests.models.small_models import put_in_hub_cache, save_small_llama


@pytest.fixture
def two_revisions(hub_cache: Path, own_cache: Path, tmp_path: Path) -> Path:
    """``org/small`` with the branch ``main`` and the tag ``v1``, whose weights differ."""
    main, v1 = (save_small_llama(tmp_path / f"seed{seed}", seed) for seed in (0, 1))
    put_in_hub_cache(hub_cache, "org/small", {"main": main, "v1": v1})
    return tmp_path


def weight(spec: str | Path) -> torch.Tensor:
    embedding = llama(load_model(spec, device="cpu").module).get_input_embeddings()
    assert isinstance(embedding, torch.nn.Embedding)
    return embedding.weight


def test_main_is_the_default(two_revisions: Path) -> None:
    assert torch.equal(weight("org/small"), weight(two_revisions / "seed0"))


def test_a_revision_is_pinned(two_revisions: Path) -> None:
    assert torch.equal(weight("org/small@v1"), weight(two_revisions / "seed1"))
    assert not torch.equal(weight("org/small@v1"), weight("org/small"))


def test_a_revision_may_be_a_commit(two_revisions: Path) -> None:
    commit = cached_revisions("org/small")["v1"]

    for digits in (40, 10):
        assert torch.equal(weight(f"org/small@{commit[:digits]}"), weight("org/small@v1"))


def test_fingerprint_is_of_the_content_not_the_path(two_revisions: Path) -> None:
    cached, local = load_model("org/small", device="cpu"), load_model(two_revisions / "seed0", device="cpu")

    assert cached.fingerprint == local.fingerprint
    assert load_model("org/small@v1", device="cpu").fingerprint != cached.fingerprint
    assert (cached.name, local.name) == ("small", "seed0")


def test_no_such_revision_names_those_there(two_revisions: Path) -> None:
    for refuse in (check_spec, load_model, load_tokenizer):
        with pytest.raises(ModelError, match=r"no revision 'v2'.*main, v1"):
            refuse("org/small@v2")


def test_uncached_and_offline(hub_cache: Path) -> None:
    with pytest.raises(ModelError, match=r"org/absent is not in the hub cache .*HF_HUB_OFFLINE") as caught:
        check_spec("org/absent")
    assert str(hub_cache) in str(caught.value)


def test_a_snapshot_without_weights_is_not_cached(two_revisions: Path, hub_cache: Path) -> None:
    for link in hub_cache.glob("models--org--small/snapshots/*/model.safetensors"):
        link.unlink()

    with pytest.raises(ModelError, match="HF_HUB_OFFLINE"):
        load_model("org/small")


def test_the_network_is_not_asked_for_what_is_cached(two_revisions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    def no_network(*_: object, **__: object) -> None:
        raise AssertionError("a connection was attempted")

    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)

    assert load_model("org/small@v1", device="cpu").name == "small"


def test_unreachable_hub_is_one_line(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def unreachable(*_: object, **__: object) -> None:
        raise ConnectionError("Name or service not known\nand a second line")

    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", unreachable)

    with pytest.raises(ModelError, match=r"org/absent is not in the hub cache.*could not be reached") as caught:
        load_model("org/absent")
    assert "\n" not in str(caught.value)


def test_the_command_lists_every_revision(two_revisions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argparse.Namespace(spec=None, tokenizer=None, allow_insecure=False)) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:5]] == ["smollm2", "tiny", "org/small", "org/small@v1"]
