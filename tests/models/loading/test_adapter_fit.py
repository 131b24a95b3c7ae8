"""An adapter is applied whole and as it was trained, or refused with the reason."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file, save_file

from lm_audit.errors import ModelError
from lm_audit.models import check_spec, load_model
from lm_audit.models.loading.adapters import dequantised
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from tests.models.architectures import architecture
from tests.models.small_models import edit_json, put_in_hub_cache, save_small_llama

IDS = torch.arange(3, 40)[None]


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_llama(tmp_path_factory.mktemp("tied") / "tied", tie_word_embeddings=True)


def save_disturbed(wrapped: Any, base: Path, folder: Path, *, spread: float) -> None:
    """Save an adapter of ``base`` after random steps of what is trained in it."""
    torch.manual_seed(5)
    with torch.no_grad():
        for name, parameter in wrapped.named_parameters():
            if "original_module" not in name and parameter.requires_grad:
                parameter.add_(spread * torch.randn_like(parameter))
    wrapped.save_pretrained(str(folder))
    edit_json(folder / "adapter_config.json", base_model_name_or_path=str(base))


def trained(base: Path, folder: Path, *, tokens: int = 0, **settings: Any) -> torch.Tensor:
    """Save an adapter of random weights for ``base``; the logits of base and adapter side by side, as PEFT loads it."""
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import AutoModelForCausalLM

    module = AutoModelForCausalLM.from_pretrained(base)
    if tokens:
        torch.manual_seed(1)
        module.resize_token_embeddings(259 + tokens)
        module.config.vocab_size = 259 + tokens
    wrapped = get_peft_model(module, LoraConfig(r=4, task_type="CAUSAL_LM", **settings))
    save_disturbed(wrapped, base, folder, spread=0.3)
    again = AutoModelForCausalLM.from_pretrained(base)
    if tokens:
        again.resize_token_embeddings(259 + tokens, mean_resizing=False)
    with torch.no_grad():
        logits: torch.Tensor = PeftModel.from_pretrained(again, folder).eval()(IDS).logits
    return logits


SETTINGS: list[dict[str, Any]] = [
    {"target_modules": ["q_proj", "lm_head"]},
    {"target_modules": ["q_proj", "embed_tokens"]},
    {"target_modules": ["embed_tokens", "lm_head"]},
    {"target_modules": ["q_proj"], "modules_to_save": ["embed_tokens"]},
    {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
    {"target_modules": ["q_proj"], "trainable_token_indices": [5, 9, 33]},
    {"target_modules": ["q_proj", "v_proj"], "use_dora": True},
    {"target_modules": ["q_proj", "v_proj"], "use_rslora": True},
    {"target_modules": "all-linear", "use_dora": True, "use_rslora": True},
    {"target_modules": ["q_proj"], "modules_to_save": ["norm", "mlp"]},
    {"target_modules": ["v_proj", "o_proj"], "layers_to_transform": [1], "layers_pattern": "layers"},
    {"target_modules": ["v_proj", "o_proj"], "bias": "all"},
    {"target_modules": ["v_proj", "o_proj"], "lora_bias": True},
    {"target_modules": r".*layers\.1\.self_attn\.(q|v)_proj"},
    {"target_modules": "all-linear", "alpha_pattern": {"q_proj": 32}, "rank_pattern": {"v_proj": 2}},
]


def sibling(of: str, settings: dict[str, Any]) -> bool:
    """Whether it is about inner layers alone, for which it is the same how embeddings and head are held."""
    return of == "untied" and not any(word in str(settings) for word in ("embed", "lm_head", "token", "all-linear"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("of", "settings"),
    [
        pytest.param(
            of,
            settings,
            id=f"{of}-" + " ".join(f"{key}={value}" for key, value in settings.items()),
            marks=[pytest.mark.slow] if sibling(of, settings) else [],
        )
        for of in ("tied", "untied")
        for settings in SETTINGS
    ],
)
def test_merged_equals_side_by_side(
    of: str, tied: Path, llama_folder: Path, tmp_path: Path, settings: dict[str, Any]
) -> None:
    base = tied if of == "tied" else llama_folder
    want = trained(base, tmp_path / "adapter", **settings)

    model = load_model(tmp_path / "adapter", device="cpu")

    with torch.no_grad():
        torch.testing.assert_close(model.module(IDS).logits, want, rtol=1e-4, atol=1e-4)
    assert (want - load_model(base, device="cpu").module(IDS).logits).abs().max() > 0.1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("of", ["tied", "untied"])
def test_layers_that_stand_several_times(of: str, tied: Path, llama_folder: Path, tmp_path: Path) -> None:
    """They share their base's weights, and each has an adapter of its own."""
    base, folder = tied if of == "tied" else llama_folder, tmp_path / "adapter"
    expected = trained(base, folder, target_modules=["q_proj"], layer_replication=[(0, 2), (0, 2)])

    torch.testing.assert_close(load_model(folder, device="cpu").module(IDS).logits, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_layers_whose_weights_the_model_reads_itself(tmp_path: Path) -> None:
    """Beside its base the adapter does nothing there, and merged it does: neither is known to be what was trained."""
    base = tmp_path / "base"
    architecture("jamba").save_pretrained(base)
    byte_tokenizer(128).save_pretrained(base)
    trained(base, tmp_path / "adapter", target_modules=["q_proj", "x_proj", "dt_proj"])
    says = r"JambaForCausalLM reads the weights of model.layers.0.mamba.dt_proj, .* past any adapter"

    with pytest.raises(ModelError, match=says):
        load_model(tmp_path / "adapter", device="cpu")

    weights = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    still = {name: value * ("dt_proj" not in name) for name, value in weights.items()}  # as after a training
    save_file(still, tmp_path / "adapter" / "adapter_model.safetensors")
    assert load_model(tmp_path / "adapter", device="cpu").told == ()


@pytest.mark.parametrize("kind", ["VBLoRAConfig", "DeftConfig", "SupertuningConfig"])
def test_kinds_with_a_common_bank_or_without_a_scale(kind: str, llama_folder: Path, tmp_path: Path) -> None:
    import peft
    from transformers import AutoModelForCausalLM

    bank = {"num_vectors": 8, "vector_length": 2, "topk": 2} if kind == "VBLoRAConfig" else {}
    rank = {} if kind == "SupertuningConfig" else {"r": 4}
    config = getattr(peft, kind)(task_type="CAUSAL_LM", target_modules=["q_proj"], **bank, **rank)
    wrapped = peft.get_peft_model(AutoModelForCausalLM.from_pretrained(llama_folder), config).eval()
    save_disturbed(wrapped, llama_folder, tmp_path / "adapter", spread=0.3)

    found = load_model(tmp_path / "adapter", device="cpu").module(IDS).logits
    torch.testing.assert_close(found, wrapped(input_ids=IDS).logits, rtol=1e-4, atol=1e-4)
    if bank:
        path = tmp_path / "adapter" / "adapter_model.safetensors"
        save_file({name: value for name, value in load_file(path).items() if "bank" not in name}, path)
        with pytest.raises(ModelError, match=r"missing: .*vblora_vector_bank"):
            load_model(tmp_path / "adapter", device="cpu")


def test_a_base_in_packed_weights_is_unpacked_where_that_can_be(llama_folder: Path) -> None:
    """Merged into packed weights an adapter is rounded, and was refused for it: "answers otherwise than beside it"."""
    from transformers import AutoModelForCausalLM

    plain, packed = (cast("Any", AutoModelForCausalLM.from_pretrained(llama_folder)) for _ in range(2))
    assert dequantised(plain) is plain
    packed.hf_quantizer = object()
    packed.dequantize = lambda: plain
    assert dequantised(packed) is plain

    def cannot() -> Any:
        raise NotImplementedError

    packed.dequantize = cannot
    assert dequantised(packed) is packed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bits", [4, 8])
def test_an_adapter_over_a_base_of_bitsandbytes(tmp_path: Path, bits: int) -> None:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed: pip install bitsandbytes")
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    quantised: Any = BitsAndBytesConfig
    packed = quantised(**{f"load_in_{bits}bit": True})
    wide: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4}
    plain = save_small_llama(tmp_path / "plain", **wide)
    module = AutoModelForCausalLM.from_pretrained(plain, quantization_config=packed, device_map="cpu")
    module.save_pretrained(tmp_path / "base")
    byte_tokenizer(64).save_pretrained(tmp_path / "base")
    expected = trained(tmp_path / "base", tmp_path / "adapter", target_modules=["q_proj", "v_proj"])

    model = load_model(tmp_path / "adapter", device="cpu")

    torch.testing.assert_close(model.module(IDS).logits, expected.float(), rtol=0.02, atol=0.02)


def test_a_base_that_is_split_at_random(llama_folder: Path, tmp_path: Path) -> None:
    """Two loads would give two sets of numbers."""
    trained(llama_folder, tmp_path / "adapter", target_modules=["q_proj"], init_lora_weights="pissa_niter_4")

    with pytest.raises(ModelError, match=r"init_lora_weights is 'pissa_niter_4'"):
        check_spec(tmp_path / "adapter")


@pytest.mark.parametrize("beginning", ["loftq", "corda", "lora_ga"])
def test_a_base_that_the_training_changed(llama_folder: Path, tmp_path: Path, beginning: str) -> None:
    """LoRA-GA's was applied to the base as it was before; the others were refused with an error of PEFT's own."""
    trained(llama_folder, tmp_path / "adapter", target_modules=["q_proj"])
    edit_json(tmp_path / "adapter" / "adapter_config.json", init_lora_weights=beginning)

    with pytest.raises(ModelError, match=rf"init_lora_weights is '{beginning}': its base is what .*set .* to true"):
        check_spec(tmp_path / "adapter")


def test_an_adapter_of_blocks_has_no_rank(llama_folder: Path, tmp_path: Path) -> None:
    """OFT states the size of its blocks and a rank of 0; it was refused for that."""
    from peft import OFTConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    module = AutoModelForCausalLM.from_pretrained(llama_folder)
    wrapped = get_peft_model(module, OFTConfig(oft_block_size=4, target_modules=["q_proj"], task_type="CAUSAL_LM"))
    save_disturbed(wrapped, llama_folder, tmp_path / "adapter", spread=0.1)

    model = load_model(tmp_path / "adapter", device="cpu")

    with torch.no_grad():
        torch.testing.assert_close(model.module(IDS).logits, wrapped.eval()(IDS).logits, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn], ids=str)
def test_numbers_without_a_scale(llama_folder: Path, tmp_path: Path, dtype: torch.dtype) -> None:
    """PEFT would take whole numbers for the weights themselves."""
    trained(llama_folder, tmp_path / "adapter", target_modules=["q_proj"])
    change_weights(tmp_path / "adapter", lambda t: {k: (v * 100).to(dtype) for k, v in t.items()})

    for refuse in (check_spec, load_model):
        with pytest.raises(ModelError, match=r"no floating-point numbers of 16 bits or more: .*lora_A"):
            refuse(tmp_path / "adapter")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"use_rslora": "no"}, "use_rslora is 'no'; expected true or false"),
        ({"use_dora": "false"}, "use_dora is 'false'"),
        ({"peft_type": None}, "names no peft_type"),
    ],
)
def test_settings_of_another_type(llama_folder: Path, tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    trained(llama_folder, tmp_path / "adapter", target_modules=["q_proj"])
    edit_json(tmp_path / "adapter" / "adapter_config.json", **changes)

    for refuse in (check_spec, load_model):
        with pytest.raises(ModelError, match=says):
            refuse(tmp_path / "adapter")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bias", ["all", "lora_only"])
def test_biases_that_the_settings_promise(tmp_path: Path, bias: str) -> None:
    """PEFT does not miss them, and the base's would stay; a single one of them too."""
    base = save_small_llama(tmp_path / "base", attention_bias=True)
    want = trained(base, tmp_path / "adapter", target_modules=["q_proj"], bias=bias)
    with torch.no_grad():
        got = load_model(tmp_path / "adapter", device="cpu").module(IDS).logits
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
    change_weights(tmp_path / "adapter", lambda t: {k: v for k, v in t.items() if "1.self_attn.q_proj.b" not in k})

    with pytest.raises(ModelError, match=r"lacks the biases model\.layers\.1\.self_attn\.q_proj\.bias, which its"):
        load_model(tmp_path / "adapter", device="cpu")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("of", ["tied", "untied"])
def test_added_tokens(of: str, tied: Path, llama_folder: Path, tmp_path: Path) -> None:
    base = tied if of == "tied" else llama_folder
    want = trained(base, tmp_path / "adapter", tokens=3, target_modules=["q_proj"])
    byte_tokenizer(64).save_pretrained(tmp_path / "adapter")

    model = load_model(tmp_path / "adapter", device="cpu")

    with torch.no_grad():
        torch.testing.assert_close(model.module(IDS).logits, want, rtol=1e-4, atol=1e-4)
    assert model.module.get_input_embeddings().num_embeddings == 262


def change_weights(folder: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    path = folder / "adapter_model.safetensors"
    save_file(change(load_file(path)), path, metadata={"format": "pt"})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: {k.replace("model.layers", "model.text.layers"): v for k, v in t.items()}, "fit nothing: .*text"),
        (lambda t: {k: v for k, v in t.items() if "layers.1" not in k}, r"missing: .*layers\.1"),
        (
            lambda t: t | {"base_model.model.model.layers.7.x.lora_A.weight": torch.zeros(4, 16)},
            r"fit nothing: .*\.7\.",
        ),
        (lambda t: {k: v for k, v in t.items() if "lora_B" not in k}, "missing: .*lora_B"),
        (lambda t: {k: v * float("nan") for k, v in t.items()}, r"adapter_model\.safetensors: NaN or Inf in .*lora_A"),
    ],
)
def test_a_partial_fit(
    llama_folder: Path, tmp_path: Path, change: Callable[[dict[str, Any]], dict[str, Any]], says: str
) -> None:
    trained(llama_folder, tmp_path / "adapter", target_modules=["q_proj", "v_proj"])
    change_weights(tmp_path / "adapter", change)

    with pytest.raises(ModelError, match=says):
        load_model(tmp_path / "adapter", device="cpu")


@pytest.mark.filterwarnings("ignore")
def test_added_tokens_whose_embeddings_are_not_there(llama_folder: Path, tmp_path: Path) -> None:
    trained(llama_folder, tmp_path / "adapter", tokens=3, target_modules=["q_proj"])
    change_weights(tmp_path / "adapter", lambda t: {k: v for k, v in t.items() if "embed_tokens" not in k})

    with pytest.raises(ModelError, match="trained on a base of 262 tokens, which has 259"):
        load_model(tmp_path / "adapter", device="cpu")


@pytest.mark.parametrize("kind", ["PROMPT_TUNING", "PREFIX_TUNING", "P_TUNING"])
def test_trained_prompts(kind: str, tmp_path: Path) -> None:
    config = {"peft_type": kind, "base_model_name_or_path": "org/base", "num_virtual_tokens": 4}
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    save_file({"prompt_embeddings": torch.zeros(4, 16)}, tmp_path / "adapter_model.safetensors")

    for refuse in (check_spec, load_model):
        with pytest.raises(ModelError, match=f"a {kind} adapter puts trained vectors beside the text"):
            refuse(tmp_path)


def cycle(folder: Path, base: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "base_model_name_or_path": str(base)}))
    save_file({"x": torch.zeros(1)}, folder / "adapter_model.safetensors")
    return folder


def test_an_adapter_of_itself(tmp_path: Path) -> None:
    folder = cycle(tmp_path / "ring", tmp_path / "ring")

    for refuse in (check_spec, load_model):
        with pytest.raises(ModelError, match="is the adapter itself; expected a whole model"):
            refuse(folder)


def test_adapters_in_a_ring(tmp_path: Path, hub_cache: Path) -> None:
    one, other = cycle(tmp_path / "one", tmp_path / "other"), cycle(tmp_path / "other", tmp_path / "one")
    put_in_hub_cache(hub_cache, "org/ring", {"main": cycle(tmp_path / "hub-ring", "org/ring")})

    for spec in (one, other, "org/ring"):
        for refuse in (check_spec, load_model):
            with pytest.raises(ModelError, match=r"its base .* is (an|the) adapter"):
                refuse(spec)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_an_adapter_on_the_hub(llama_folder: Path, tmp_path: Path, hub_cache: Path) -> None:
    want = trained(llama_folder, tmp_path / "adapter", target_modules=["q_proj"])
    edit_json(tmp_path / "adapter" / "adapter_config.json", base_model_name_or_path="org/base")
    put_in_hub_cache(hub_cache, "org/base", {"main": llama_folder})
    put_in_hub_cache(hub_cache, "org/adapter", {"main": tmp_path / "adapter"})

    model = load_model("org/adapter", device="cpu")

    torch.testing.assert_close(model.module(IDS).logits, want, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_adapter_left_in_a_model_s_folder(llama_folder: Path, tmp_path: Path, dtype: str) -> None:
    """The whole model counts, as it does where the adapter files are absent, and a word says so."""
    trained(llama_folder, tmp_path / "adapter", target_modules=["q_proj"])
    both = shutil.copytree(llama_folder, tmp_path / "both")
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        shutil.copyfile(tmp_path / "adapter" / name, both / name)

    with pytest.warns(UserWarning, match="the whole model is taken, the adapter is left out"):
        model = load_model(both, device="cpu", dtype=dtype)

    plain = load_model(llama_folder, device="cpu", dtype=dtype)
    assert torch.equal(model.module(IDS).logits, plain.module(IDS).logits)
    assert model.fingerprint == plain.fingerprint


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_an_adapter_beside_a_config_without_weights(llama_folder: Path, tmp_path: Path) -> None:
    want = trained(llama_folder, tmp_path / "adapter", target_modules=["q_proj"])
    shutil.copyfile(llama_folder / "config.json", tmp_path / "adapter" / "config.json")

    model = load_model(tmp_path / "adapter", device="cpu")

    torch.testing.assert_close(model.module(IDS).logits, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("what", ["weights", "scale"])
def test_an_adapter_that_changes_nothing_is_told(llama_folder: Path, tmp_path: Path, what: str) -> None:
    folder = tmp_path / "adapter"
    trained(llama_folder, folder, target_modules=["q_proj"])
    if what == "scale":
        edit_json(folder / "adapter_config.json", lora_alpha=0)
    else:
        path = folder / "adapter_model.safetensors"
        save_file({k: v * 0 if "lora_B" in k else v for k, v in load_file(path).items()}, path)
    with pytest.warns(UserWarning, match="changes nothing"):
        load_model(folder, device="cpu")


def test_an_adapter_over_an_adapter_is_refused(llama_folder: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        trained(llama_folder, tmp_path / name, target_modules=["q_proj"])
    edit_json(tmp_path / "second" / "adapter_config.json", base_model_name_or_path=str(tmp_path / "first"))
    for ask in (check_spec, load_model):
        with pytest.raises(ModelError, match=r"its base .*first is an adapter; expected a whole model"):
            ask(str(tmp_path / "second"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stored", ["both", "head", "table"])
def test_tied_weights_under_either_name_or_both(tied: Path, tmp_path: Path, stored: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tied, copy)
    tensors = load_file(copy / "model.safetensors")
    table = tensors.pop("model.embed_tokens.weight")
    names = {"head": ["lm_head.weight"], "table": ["model.embed_tokens.weight"]}
    for name in names.get(stored, [*names["head"], *names["table"]]):
        tensors[name] = table.clone()
    save_file(tensors, copy / "model.safetensors", {"format": "pt"})
    with torch.no_grad():
        want, found = (load_model(folder, device="cpu").module(IDS).logits for folder in (tied, copy))
    assert torch.equal(want, found)


def test_tied_names_with_different_weights_are_told_and_kept_apart(tied: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tied, copy)
    tensors = load_file(copy / "model.safetensors")
    tensors["lm_head.weight"] = 2 * tensors["model.embed_tokens.weight"]
    save_file(tensors, copy / "model.safetensors", {"format": "pt"})
    with pytest.warns(UserWarning, match="tied weights"):
        model = load_model(copy, device="cpu")
    with torch.no_grad():
        want = 2 * load_model(tied, device="cpu").module(IDS).logits
        torch.testing.assert_close(model.module(IDS).logits, want)
