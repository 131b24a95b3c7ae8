"""The fused GPU kernels: in Triton's interpreter where Triton is installed, and on a GPU where there is one."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from lm_audit.audits.faithfulness.methods.ifr import heads, proximity
from lm_audit.audits.faithfulness.methods.ifr.routes import flow_matrix, flow_span
from lm_audit.audits.faithfulness.methods.trace import trace_passage
from tests.audits.faithfulness.small_decoders import IDS, small_decoder

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
def test_kernels_in_the_interpreter() -> None:
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    command = [sys.executable, "-m", "tests.audits.faithfulness.kernel_check"]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr[-2000:]


def test_without_a_gpu_there_are_no_kernels() -> None:
    assert heads.gpu_kernels(torch.zeros(1, 1, 64)) is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("kind", ["llama", "qwen3", "qwen3_window"])
def test_fused_and_plain_scores_agree_on_a_gpu(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_decoder(kind, head_dim=16).cuda()
    trace = trace_passage(model, IDS)
    rows = list(range(9, len(IDS)))
    fused = flow_matrix(trace, rows).tokens.cpu(), flow_span(trace, rows).tokens.cpu()
    monkeypatch.setattr(heads, "gpu_kernels", lambda tensor: None)
    monkeypatch.setattr(proximity, "gpu_kernels", lambda tensor: None)
    plain = flow_matrix(trace, rows).tokens.cpu(), flow_span(trace, rows).tokens.cpu()
    for one, other in zip(fused, plain, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)


@pytest.mark.parametrize(("length", "pieces"), [(40, 1), (40, 4), (43, 4), (7, 7)])
def test_a_product_in_pieces_is_the_product(length: int, pieces: int) -> None:
    left, right = torch.randn(3, 5, length), torch.randn(3, length, 6)

    found = heads.long_product(left, right, pieces)

    assert torch.allclose(found, left @ right, atol=1e-5)
