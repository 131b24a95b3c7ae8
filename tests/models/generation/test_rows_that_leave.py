"""Rows that leave a batch whose cache keeps more than keys and values."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

from lm_audit.models.generation.decoding import StepModel
from tests.models.architectures import architecture
from tests.models.test_every_architecture import rows

_INKLING = {
    **{"vocab_size": 272, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 16},
    **{"num_key_value_heads": 1, "swa_num_attention_heads": 2, "swa_num_key_value_heads": 1, "swa_head_dim": 16},
    **{"sliding_window_size": 16, "d_rel": 4, "rel_extent": 32, "moe_intermediate_size": 16, "n_routed_experts": 2},
    **{"num_experts_per_tok": 1, "unpadded_vocab_size": 272, "eos_token_id": 2, "initializer_range": 0.2},
    **{"layer_types": ["hybrid_sliding", "hybrid"], "n_layers_per_attn_res_block": 2},
}


@pytest.mark.parametrize("kind", ["inkling2_text", "jamba", "mistral_swa"])
@pytest.mark.parametrize("kept", [[1], [0, 2]])
def test_the_others_go_on_as_by_themselves(kind: str, kept: list[int]) -> None:
    """A layer of keys and a state beside them selects among its keys alone; Jamba's layers of a state among nothing."""
    if kind == "inkling2_text":
        torch.manual_seed(0)
        build: Any = transformers.AutoModelForCausalLM.from_config
        module = build(transformers.AutoConfig.for_model(kind, **_INKLING)).eval()
    else:
        module = architecture(kind)
    texts = rows(9, 9, 9)
    with torch.inference_mode():
        steps = StepModel(module, torch.device("cpu"), texts)
        steps.next_logits()
        steps.feed([7] * len(kept), kept)
        found = steps.next_logits().log_softmax(-1)

        for place, row in enumerate(kept):
            whole = module(input_ids=torch.tensor([[*texts[row], 7]]), use_cache=False).logits[0, -1].log_softmax(-1)
            torch.testing.assert_close(found[place], whole, atol=1e-4, rtol=0)
