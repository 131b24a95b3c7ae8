"""A GGUF file that is no whole causal model of a convertible architecture is refused by its header alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_audit.errors import ModelError
from lm_audit.models.compat import gguf_architectures
from lm_audit.models.files.gguf import known
from lm_audit.models.files.gguf.file import check_gguf
from lm_audit.models.files.gguf.header import GgufHeader


def header(architecture: str, **metadata: Any) -> GgufHeader:
    return GgufHeader({"general.architecture": architecture, **metadata}, {})


@pytest.mark.parametrize(
    ("architecture", "words"),
    [
        ("clip", r"m\.gguf is what a model sees or hears by \('clip'\), not the model: name its own file"),
        ("nomic-bert-moe", "'nomic-bert-moe', which is no causal language model"),
        ("t5encoder", "which is no causal language model"),
        ("gemma-embedding", "which is no causal language model"),
        ("llama4", "'llama4', whose files are not converted here: name the folder or hub id of the original model"),
        ("rwkv7", "not converted here"),
        ("", "not converted here"),
        ("x" * 500 + "\u202e", "not converted here"),
    ],
)
def test_architectures_that_are_refused(architecture: str, words: str) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        known.check_known(header(architecture), Path("m.gguf"))
    assert len(str(caught.value)) < 300 and "\u202e" not in str(caught.value)


@pytest.mark.parametrize("name", ["llama", "qwen2", "gemma3", "gpt-oss", "deepseek2", "minimax-m2", "lfm2", "glm4moe"])
def test_those_that_are_not(name: str) -> None:
    known.check_known(header(name), Path("m.gguf"))
    known.check_known(header(name, **{"split.count": 1, "split.no": 0}), Path("m.gguf"))


def test_the_list_is_of_transformers() -> None:
    assert {name.replace("-", "_") for name in known._BY_TRANSFORMERS} - {"qwen3moe"} <= gguf_architectures()


@pytest.mark.parametrize(("number", "told"), [(0, "part 1 of 3"), (2, "part 3 of 3")])
def test_a_part_of_a_split_file(number: int, told: str, tmp_path: Path) -> None:
    """Parts behind the first state nothing but their place."""
    from gguf import GGUFWriter

    path = tmp_path / f"m-{number + 1:05}-of-00003.gguf"
    writer: Any = GGUFWriter(path, "llama")
    if number:
        writer.kv_data[0].pop("general.architecture")
    writer.add_uint16("split.no", number)
    writer.add_uint16("split.count", 3)
    writer.add_tensor("blk.0.attn_q.weight", np.zeros((4, 4), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match=rf"{told} of a model: join them \(llama-gguf-split --merge"):
        check_gguf(path)
