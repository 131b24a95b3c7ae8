"""GGUF files, de-quantised once to a float32 model folder: reading GGUF takes tens of seconds, its copy half of one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_audit.errors import HarnessError, ModelError
from lm_audit.models.compat import gguf_names_once, gguf_tensors_without_place, tied_names
from lm_audit.models.files.disk_cache import build_once, cache_dir
from lm_audit.models.files.gguf.byte_level import as_stated, mark_as_stated
from lm_audit.models.files.gguf.header import GgufHeader, read_header
from lm_audit.models.files.gguf.known import check_known
from lm_audit.models.files.gguf.pre_tokenizer import begins_with_bos, check_pre, pre_tokenizer
from lm_audit.models.files.gguf.recipes.making import made_config, write_model
from lm_audit.models.files.gguf.recipes.recipe import Recipe
from lm_audit.models.files.gguf.recipes.table import recipe_of
from lm_audit.models.files.gguf.settings import ROPE_TENSORS, check_header, complete_config
from lm_audit.models.files.json_file import listed, one_line
from lm_audit.models.files.unchanged import once_unchanged
from lm_audit.models.loading.identity.digests import file_digest
from lm_audit.shared.code_version import made_by
from lm_audit.shared.sealed_folder import is_whole
from lm_audit.shared.textfiles.full_disk import full_disk

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_MAKERS = ("models/files", "models/text", "models/checks", "models/compat.py", "models/context.py")
_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "sentencepiece", "protobuf", "gguf", "numpy")
"""The code and the packages that decide what a conversion gives."""

_BYTE_LEVEL = "gpt2"
"""``tokenizer.ggml.model`` of byte-level BPE, the only kind that is split by ``tokenizer.ggml.pre``."""

_PIECES = "llama"
"""``tokenizer.ggml.model`` of SentencePiece's byte-pair encoding."""


@once_unchanged
def check_gguf(path: Path) -> None:
    """``ModelError`` where the header of ``path`` is damaged, contradicts itself, or names what cannot be converted."""
    header = read_header(path)
    check_known(header, path)
    check_header(header, path)
    if header.metadata.get("tokenizer.ggml.model") == _BYTE_LEVEL:
        check_pre(header.metadata.get("tokenizer.ggml.pre"), path)


def converted_folder(path: Path) -> Path:
    """The model folder made from ``path``: config, float32 safetensors and tokenizer; made once per content."""
    check_gguf(path)
    return build_once(_place("gguf", path), lambda scratch: _convert(path, scratch))


def tokenizer_of(path: Path) -> Path:
    """A folder with the tokenizer of ``path``: the converted model's, or one of its own, made without the weights."""
    check_gguf(path)
    whole = _place("gguf", path)
    return whole if is_whole(whole) else build_once(_place(_TOKENIZERS, path), lambda scratch: _tokens(path, scratch))


_TOKENIZERS = "gguf-tokenizers"


def _place(kind: str, path: Path) -> Path:
    name = f"{path.stem[:40]}-{file_digest(path)[:16]}-{made_by(*_MAKERS, packages=_PACKAGES)[:8]}"
    return cache_dir() / kind / name


def _convert(path: Path, folder: Path) -> None:
    header = read_header(path)
    recipe = recipe_of(header)
    with _blaming(path):
        module = _module(path, header) if recipe is None else _by_recipe(path, header, recipe, folder)
        if is_whole(made := _place(_TOKENIZERS, path)):
            shutil.copytree(made, folder, dirs_exist_ok=True)
        else:
            _write_tokenizer(path, header, module.config, folder)
    if recipe is None:
        _write_weights(module, folder)
    _end_where_stated(module, header, path)
    _write_config(module, folder)


def _tokens(path: Path, folder: Path) -> None:
    header = read_header(path)
    with _blaming(path):
        _write_tokenizer(path, header, _config(path, header), folder)


@contextmanager
def _blaming(path: Path) -> Iterator[None]:
    from lm_audit.models.loading.quiet import quiet_transformers

    try:
        with quiet_transformers(), gguf_names_once():
            yield
    except HarnessError:
        raise
    except Exception as error:  # whatever a parser meets in a file that is damaged or of an unknown kind
        if full_disk(error):  # nothing is wrong with the file
            raise
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise ModelError(f"{path} cannot be converted by transformers: {reason}") from error


def _config(path: Path, header: GgufHeader) -> Any:
    from transformers import AutoConfig

    recipe = recipe_of(header)
    config = (
        AutoConfig.from_pretrained(path.parent, gguf_file=path.name) if recipe is None else made_config(recipe, header)
    )
    return complete_config(config, header, path, lambda name: _small_tensor(path, name))


def _by_recipe(path: Path, header: GgufHeader, recipe: Recipe, folder: Path) -> PreTrainedModel:
    """The model that ``folder`` holds after the file was written into it, loaded to see that nothing is amiss."""
    from transformers import AutoModelForCausalLM

    from lm_audit.models.checks.weights_fit import check_fit

    write_model(recipe, _config(path, header), header, path, folder)
    untyped: Any = AutoModelForCausalLM
    module: PreTrainedModel
    module, report = untyped.from_pretrained(folder, output_loading_info=True, ignore_mismatched_sizes=True)
    check_fit(report, str(path))
    return module


def _write_weights(module: PreTrainedModel, folder: Path) -> None:
    from safetensors.torch import save_file

    tied = tied_names(module)
    tensors = {name: value.contiguous() for name, value in module.state_dict().items() if name not in tied}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _module(path: Path, header: GgufHeader) -> PreTrainedModel:
    import torch
    from transformers import AutoModelForCausalLM

    from lm_audit.models.checks.weights_fit import check_fit

    module: PreTrainedModel
    untyped: Any = AutoModelForCausalLM
    module, report = untyped.from_pretrained(
        path.parent,
        gguf_file=path.name,
        config=_config(path, header),
        dtype=torch.float32,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # so that they are in the report, which refuses them
    )
    _check_all_read(module, header, path)
    check_fit(_without_absent_biases(module, report), str(path))
    return module


def _without_absent_biases(module: PreTrainedModel, report: Any) -> dict[str, Any]:
    """The report without biases that the file leaves out beside others that it has: they are zero."""
    import torch

    absent = {key for key in report["missing_keys"] if key.endswith("_proj.bias")}
    with torch.no_grad():
        for key in absent:
            module.get_parameter(key).zero_()
    return {**report, "missing_keys": set(report["missing_keys"]) - absent}


def _check_all_read(module: PreTrainedModel, header: GgufHeader, path: Path) -> None:
    """``ModelError`` naming the file's tensors for which transformers' conversion has no place: it drops them."""
    left = gguf_tensors_without_place(module, header, frozenset({*ROPE_TENSORS, "output.weight"}))
    if left:
        raise ModelError(f"{path} holds tensors that the conversion cannot keep: {listed(left)}")


def _small_tensor(path: Path, name: str) -> list[float]:
    from gguf import GGUFReader, dequantize

    tensor = next(one for one in GGUFReader(path).tensors if one.name == name)
    values: list[float] = dequantize(tensor.data, tensor.tensor_type).reshape(-1).tolist()
    return values


def _end_where_stated(module: PreTrainedModel, header: GgufHeader, path: Path) -> None:
    """Let generation end at the ends of a turn and of a message too, as llama.cpp does."""
    stated = [header.metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom")]
    ends = list(dict.fromkeys(number for number in stated if number is not None))
    embeddings: Any = module.get_input_embeddings()
    rows = int(embeddings.num_embeddings)
    if any(not isinstance(number, int) or not 0 <= number < rows for number in ends):
        raise ModelError(f"{path} ends texts at the tokens {ends}; its embeddings end at {rows - 1}")
    if len(ends) > 1:
        module.generation_config.eos_token_id = ends


def _write_config(module: PreTrainedModel, folder: Path) -> None:
    config = module.config.to_dict()
    for gone in ("quantization_config", "_name_or_path"):
        config.pop(gone, None)
    config |= {"architectures": [type(module).__name__], "dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True), encoding="utf-8")
    module.generation_config.save_pretrained(folder)


def _write_tokenizer(path: Path, header: GgufHeader, config: object, folder: Path) -> None:
    tokenizer = _tokenizer(path, header, config, by_transformers=recipe_of(header) is None)
    tokenizer.save_pretrained(folder)
    mark_as_stated(folder)


def _tokenizer(path: Path, header: GgufHeader, config: object, *, by_transformers: bool) -> Any:
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    from lm_audit.models.context import context_window

    # The automatic class asks for a configuration that transformers made of the file.
    reader: Any = AutoTokenizer if by_transformers else PreTrainedTokenizerFast
    tokenizer = reader.from_pretrained(path.parent, gguf_file=path.name)
    if header.metadata.get("tokenizer.ggml.model") == _BYTE_LEVEL:
        tokenizer = as_stated(tokenizer, path)
    tokenizer.model_max_length = context_window(config) or tokenizer.model_max_length
    if header.metadata.get("tokenizer.ggml.model") == _BYTE_LEVEL:
        pre = check_pre(header.metadata.get("tokenizer.ggml.pre"), path)
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizer(pre)
        _frame(tokenizer, header, begins_with_bos(pre))
    elif header.metadata.get("tokenizer.ggml.add_space_prefix") is False:
        _without_space_prefix(tokenizer, path)
    elif header.metadata.get("tokenizer.ggml.model") == _PIECES:
        _with_space_prefix(tokenizer)
    return tokenizer


def _with_space_prefix(tokenizer: Any) -> None:
    """White space before a text, be there some already, and behind each special token, as llama.cpp puts it."""
    from tokenizers import decoders, normalizers

    backend = tokenizer.backend_tokenizer
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.pre_tokenizer = None
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )


def _without_space_prefix(tokenizer: Any, path: Path) -> None:
    """No white space before a text, which a conversion puts there whatever the file says."""
    from tokenizers import decoders, pre_tokenizers

    backend = tokenizer.backend_tokenizer
    if isinstance(backend.pre_tokenizer, pre_tokenizers.Metaspace):
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=False)
        backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    plain, spaced = (tokenizer(text, add_special_tokens=False).input_ids for text in ("a", " a"))
    if plain == spaced:
        raise ModelError(f"{path} states what the conversion cannot keep: tokenizer.ggml.add_space_prefix = False")


def _frame(tokenizer: Any, header: GgufHeader, begins: bool) -> None:
    """BOS and EOS round a text where the file, or else llama.cpp, says so."""
    from tokenizers import processors

    from lm_audit.models.text.text_ids import added

    bos = header.metadata.get("tokenizer.ggml.bos_token_id")
    eos = header.metadata.get("tokenizer.ggml.eos_token_id")
    head = [bos] if header.metadata.get("tokenizer.ggml.add_bos_token", begins) and bos is not None else []
    tail = [eos] if header.metadata.get("tokenizer.ggml.add_eos_token", False) and eos is not None else []
    if added(tokenizer) == (tuple(head), tuple(tail)):
        return
    marks = {f"{tokenizer.convert_ids_to_tokens(number)}": number for number in (*head, *tail)}
    spelt = [tokenizer.convert_ids_to_tokens(number) for number in head]
    single = [*spelt, "$A", *(tokenizer.convert_ids_to_tokens(number) for number in tail)]
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=single, special_tokens=list(marks.items())
    )
