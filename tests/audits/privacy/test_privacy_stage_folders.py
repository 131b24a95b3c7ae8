"""Trained stages are those of this base and this corpus, wherever the package lies."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lm_audit.audits.privacy.measure.stage_scores import ScoringOptions
from lm_audit.audits.privacy.measured_cases import _digest, toy_evidence
from lm_audit.audits.privacy.stages.config import StagesConfig, smoke_config
from lm_audit.audits.privacy.stages.four_stages import claim, is_done, run_stages
from lm_audit.audits.privacy.stages.stage_inputs import base_spec
from lm_audit.audits.privacy.stages.stage_names import STAGES
from lm_audit.cli import main
from lm_audit.errors import UsageError
from lm_audit.evidence import Evidence
from lm_audit.models.loading.identity import spec_identity as identity
from lm_audit.models.toy.tiny import TinySettings
from lm_audit.models.toy.tiny_model import tiny_model

TRAINED_ELSEWHERE = replace(TinySettings(), rows=40, decoys=4, epochs=1)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    model = tiny_model()
    model.module.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


def test_the_toy_is_named_and_no_folder_of_the_package() -> None:
    assert base_spec(StagesConfig()) == "tiny:0"
    assert base_spec(StagesConfig(model="tiny", seed=3)) == "tiny:3"
    assert base_spec(StagesConfig(model="tiny:5", seed=3)) == "tiny:5"


def test_a_pointer_to_a_folder_that_moved_is_written_anew(smoke_stages: tuple[StagesConfig, dict[str, Path]]) -> None:
    config, stages = smoke_stages
    pointer = stages["base"] / "spec.txt"
    pointer.write_text("/a/package/that/moved/tiny\n")
    run_stages(config)
    assert pointer.read_text().strip() == base_spec(config)


def test_a_toy_of_other_settings_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_AUDIT_CACHE", str(tmp_path))
    other = base_spec(smoke_config(tiny=TRAINED_ELSEWHERE))
    assert Path(other).is_relative_to(tmp_path)


def _change(folder: Path) -> None:
    identity.forget()
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {"rms_norm_eps": 0.5}))


def test_other_weights_in_the_same_folder_are_other_stages(base: Path) -> None:
    config = smoke_config(model=str(base))
    before = config.folder()
    assert config.folder() == before
    _change(base)
    assert config.folder() != before


def test_other_documents_in_the_same_file_are_other_stages(tmp_path: Path) -> None:
    documents = tmp_path / "documents.jsonl"
    documents.write_text('{"text": "one"}\n')
    config = smoke_config(documents_path=documents)
    before = config.folder()
    identity.forget()
    documents.write_text('{"text": "two"}\n')
    assert config.folder() != before


def test_a_folder_of_the_user_is_not_taken_for_another_base(base: Path, tmp_path: Path) -> None:
    config: StagesConfig = smoke_config(model=str(base), output=tmp_path / "out")
    (tmp_path / "out").mkdir()
    claim(config, config.folder())
    claim(config, config.folder())
    (config.folder() / "stages").mkdir()
    elsewhere = shutil.copytree(base, tmp_path / "elsewhere")
    _change(base)
    with pytest.raises(UsageError, match=r"another base model or other documents \(differs in base\)"):
        claim(config, config.folder())
    shutil.copyfile(elsewhere / "config.json", base / "config.json")
    identity.forget()
    claim(config, config.folder())


def test_steps_take_options_as_long_as_nothing_there_hangs_on_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "out")
    steps: list[tuple[int, tuple[str, ...]]] = [
        (0, ("canaries", "--smoke", "--members", "6")),
        (2, ("canaries", "--members", "7")),
        (2, ("corpus", "--documents", "100", "--decoys", "10")),  # too few for so many canaries
        (0, ("corpus", "--documents", "2000")),
        (2, ("corpus", "--documents", "2001")),
        (2, ("preferences", "--seed", "3")),
        (0, ("preferences", "--pairs", "30", "--pair-style", "source")),
        (2, ("preferences", "--pairs", "31")),
    ]
    for code, (step, *options) in steps:
        assert main(["privacy", step, "--output", folder, *options]) == code, (step, options)
    told = capsys.readouterr().err.splitlines()
    assert [line.partition("differs in ")[2].partition(")")[0] for line in told if "differs" in line] == [
        "members", "documents", "seed", "pairs",
    ]  # fmt: skip
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert {name: config[name] for name in ("members", "documents", "decoys", "pairs", "pair_style")} == {
        "members": 6, "documents": 2000, "decoys": 10, "pairs": 30, "pair_style": "source",
    }  # fmt: skip


def test_evidence_is_kept_apart_by_what_its_last_digits_hang_on() -> None:
    """Of two workers that share a cache one must not take what the other has summed up in another order."""
    options, threads = ScoringOptions(), torch.get_num_threads()
    names = set()
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            names |= {_digest(options, "cpu"), _digest(options, "cpu"), _digest(options, "cuda")}
    finally:
        torch.set_num_threads(threads)
    assert len(names) == 4


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff\x00", b"[" * 50_000], ids=ascii)
def test_a_stage_whose_record_is_damaged_is_not_done(tmp_path: Path, content: bytes) -> None:
    assert not is_done(tmp_path)
    (tmp_path / "stage.json").write_bytes(content)
    assert not is_done(tmp_path)
    (tmp_path / "stage.json").write_text('{"stage": "sft"}')
    assert is_done(tmp_path)


def test_a_stage_whose_weights_were_changed_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    config = smoke_config(output=tmp_path)

    def train(stage: str, config: StagesConfig, folder: Path, target: Path) -> dict[str, object]:
        made.append(stage)
        target.mkdir(parents=True)
        (target / "model.safetensors").write_bytes(b"0123")
        return {}

    four_stages = "lm_audit.audits.privacy.stages.four_stages"
    monkeypatch.setattr(f"{four_stages}._trainers", lambda config: dict.fromkeys(STAGES, train))
    monkeypatch.setattr(f"{four_stages}.stage_spec", lambda target: base_spec(config))
    for damage, again in ((None, [*STAGES]), (None, []), (b"0124", ["sft"]), (b"01", ["sft"]), (None, [])):
        made.clear()
        if damage is not None:
            (tmp_path / "stages" / "sft" / "model.safetensors").write_bytes(damage)
        run_stages(config)
        assert made == again


def test_kept_evidence_that_is_damaged_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def measured(*_: object, **__: object) -> Evidence:
        asked.append(1)
        return Evidence("privacy", notes=["measured"])

    monkeypatch.setattr("lm_audit.audits.privacy.stages.four_stages.run_stages", lambda config: {})
    monkeypatch.setattr("lm_audit.audits.privacy.audit.audit_stages", measured)
    config, options = smoke_config(output=tmp_path), ScoringOptions()
    whole = ""
    for content in (None, "", "{", "[]", '{"audit": "privacy"}', "another word"):
        for kept in tmp_path.glob("evidence-*.json"):
            whole = whole or kept.read_text()
            if content is not None:
                kept.write_text(whole.replace("measured", "Measured") if content == "another word" else content)
        toy_evidence.cache_clear()
        assert toy_evidence(config, options).notes == ["measured"]
    toy_evidence.cache_clear()
    toy_evidence(config, options)
    toy_evidence.cache_clear()
    assert len(asked) == 6
