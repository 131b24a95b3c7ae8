"""Models that see what they should predict are refused by name, with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from lm_audit.errors import ModelError
from lm_audit.models import check_spec, load_model
from lm_audit.models.checks.causality import prove_causal
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from tests.models.small_models import edit_json, small_llama

SHAPE: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "BertForMaskedLM": ("BertConfig", SHAPE),
    "RobertaForMaskedLM": ("RobertaConfig", SHAPE),
    "ElectraForMaskedLM": ("ElectraConfig", SHAPE | {"embedding_size": 16}),
    "XLMRobertaForMaskedLM": ("XLMRobertaConfig", SHAPE),
    "CamembertForMaskedLM": ("CamembertConfig", SHAPE),
    "XLNetLMHeadModel": ("XLNetConfig", {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 16}),
    "XLMWithLMHeadModel": ("XLMConfig", {"emb_dim": 16, "n_layers": 2, "n_heads": 2}),
}


def saved(kind: str, folder: Path) -> Path:
    config, shape = KINDS[kind]
    torch.manual_seed(0)
    module = getattr(transformers, kind)(getattr(transformers, config)(vocab_size=259, pad_token_id=0, **shape))
    module.save_pretrained(folder)
    byte_tokenizer(64).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("named", [True, False])
def test_masked_and_permuted_models(kind: str, named: bool, tmp_path: Path) -> None:
    """Whether their config names the class or not: without it, the logits give them away."""
    folder = saved(kind, tmp_path / "model-under-test")
    if not named:
        edit_json(folder / "config.json", architectures=None)

    with pytest.raises(ModelError, match=r"model-under-test.*(causal)"):
        load_model(folder, device="cpu")


def test_a_masked_model_is_refused_before_torch(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="BertForMaskedLM, which is no causal language model"):
        check_spec(saved("BertForMaskedLM", tmp_path / "bert"))


def test_a_decoder_of_that_kind_is_causal(tmp_path: Path) -> None:
    config = transformers.BertConfig(vocab_size=259, is_decoder=True, **SHAPE)
    transformers.BertLMHeadModel(config).save_pretrained(tmp_path)
    byte_tokenizer(64).save_pretrained(tmp_path)

    load_model(tmp_path, device="cpu")


@pytest.mark.parametrize(("kind", "config"), [("T5", "T5Config"), ("Bart", "BartConfig")])
def test_encoder_decoders(kind: str, config: str, tmp_path: Path) -> None:
    getattr(transformers, config)(vocab_size=259).save_pretrained(tmp_path)
    byte_tokenizer(64).save_pretrained(tmp_path)
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(300, 300)}, tmp_path / "model.safetensors")

    with pytest.raises(ModelError, match="encoder-decoder"):
        check_spec(tmp_path)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_leak_of_any_size_is_found(dtype: torch.dtype) -> None:
    """A model whose last layer sees a little of the next token's embedding, in single and in half precision."""
    module = small_llama().to(dtype)
    prove_causal(module, "sound")
    share = 0.01 if dtype is torch.float32 else 0.5

    def look_ahead(_: Any, __: Any, hidden: Any) -> Any:
        return hidden + share * torch.roll(hidden, -1, dims=1)

    module.model.norm.register_forward_hook(look_ahead)
    with pytest.raises(ModelError, match="is not causal"):
        prove_causal(module, "leaky")


def test_a_model_that_sees_how_long_the_whole_text_is(tmp_path: Path) -> None:
    """ProphetNet takes biases of positions from a table that it lays out by the length of the text."""
    shape: dict[str, Any] = {
        "hidden_size": 16,
        "num_decoder_layers": 2,
        "num_decoder_attention_heads": 2,
        "decoder_ffn_dim": 16,
    }
    encoder: dict[str, Any] = {"num_encoder_layers": 1, "num_encoder_attention_heads": 2, "encoder_ffn_dim": 16}
    config = transformers.ProphetNetConfig(vocab_size=259, max_position_embeddings=64, **shape, **encoder)
    torch.manual_seed(0)
    transformers.ProphetNetForCausalLM(config).save_pretrained(tmp_path / "prophet")
    byte_tokenizer(64).save_pretrained(tmp_path / "prophet")

    with pytest.raises(ModelError, match=r"prophet \(ProphetNetForCausalLM\) is not causal: three more tokens"):
        load_model(tmp_path / "prophet", device="cpu")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_any_number_that_hangs_on_the_length_is_found(dtype: torch.dtype) -> None:
    module = small_llama().to(dtype)
    share = 0.01 if dtype is torch.float32 else 0.5

    def by_length(_: Any, __: Any, hidden: Any) -> Any:
        return hidden * (1 + share * hidden[..., :1].sign() * hidden.shape[1])

    module.model.norm.register_forward_hook(by_length)
    with pytest.raises(ModelError, match="whatever they are"):
        prove_causal(module, "long")
