"""From checked files to a module in memory: everything of loading that needs torch and transformers."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lm_audit.errors import HarnessError, ModelError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.checks.added_tokens import check_added, tell_words
from lm_audit.models.checks.causality import prove_causal
from lm_audit.models.checks.make import tell_make
from lm_audit.models.checks.plain_english import tell_nonsense
from lm_audit.models.checks.proofs import Proofs
from lm_audit.models.checks.stored_buffers import tell_buffers
from lm_audit.models.checks.tokenizer_frame import tell_frame
from lm_audit.models.checks.tokenizer_reads import evaluate, tell_class, tell_dates, tell_losses, tell_templates
from lm_audit.models.checks.unread_settings import tell_length, tell_unfollowed, tell_unread
from lm_audit.models.checks.vocabulary_fit import check_vocabulary, tell_ends
from lm_audit.models.checks.weights_fit import check_finite, check_fit, check_layers
from lm_audit.models.compat import unread_rotations
from lm_audit.models.context import text_config
from lm_audit.models.files.adapter_folder import CONFIG, WEIGHTS
from lm_audit.models.files.checkpoint import Adapter, Checkpoint
from lm_audit.models.files.class_names import unknown_classes
from lm_audit.models.files.gguf.byte_level import is_as_stated
from lm_audit.models.files.json_file import listed, one_line
from lm_audit.models.files.quantised.methods import read_plain
from lm_audit.models.loading.conversion import folder_in_dtype
from lm_audit.models.loading.devices import torch_dtype
from lm_audit.models.loading.identity.digests import (
    code_digest,
    nonfinite_tensors,
    weights_digest,
    zero_tensors,
)
from lm_audit.models.loading.placement import DeviceMap, placement, places
from lm_audit.models.loading.quiet import quiet_transformers
from lm_audit.models.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from lm_audit.models.files.source import Source
    from lm_audit.models.language_model import LanguageModel


def load_module(
    checkpoint: Checkpoint,
    adapter: Adapter | None,
    name: str,
    device: torch.device,
    dtype: str,
    trust_remote_code: bool = False,
    device_map: DeviceMap = None,
) -> CausalModule:
    """The causal model of ``checkpoint``, an adapter merged into it, on ``device``; it is evaluated, never trained.

    With ``device_map`` its parts lie where that puts them, and quantised weights are put on ``device`` as they load:
    neither can be moved afterwards.

    Raises ``ModelError`` where transformers cannot load it, where its tensors are not those of its config, where they
    hold NaN or Inf, and where it does not read from left to right.
    """
    folder = folder_in_dtype(checkpoint, dtype) if device.type == "cpu" else checkpoint.folder
    where = placement(device_map, device)
    if where is None and checkpoint.quantised:
        where = {"": device.index or 0 if device.type == "cuda" else str(device)}
    if checkpoint.left_adapter:
        warnings.warn(
            f"{checkpoint.folder} holds a whole model and an adapter: the whole model is taken, the adapter is left out"
            " (to audit it, name a folder that holds the adapter alone)",
            stacklevel=2,
        )
    if left := checkpoint.left_weights:
        warnings.warn(
            f"{checkpoint.folder}: {listed(left)} beside the model's weights are not read",
            stacklevel=2,
        )
    if gone := checkpoint.gone_shards:
        warnings.warn(
            f"{checkpoint.folder}: its index names {listed(gone)}, which are not there; {checkpoint.weights[0].name} is"
            " the model",
            stacklevel=2,
        )
    with _without_adapter(folder) as plain:
        module, report, heard = _read(plain, name, checkpoint, dtype, trust_remote_code, where)
    module = module.eval().requires_grad_(False)
    _count_decoder_layers(module)
    check_fit(report, _where(name, checkpoint.folder))
    check_layers((entry.name for entry in checkpoint.entries), module.state_dict(), _where(name, checkpoint.folder))
    tell_buffers(module, checkpoint.weights, _where(name, checkpoint.folder))
    _check_rotation(module, checkpoint)
    heard.tell_of_numbers(name)
    if stray := unknown_classes(checkpoint.config):
        warnings.warn(
            f"{checkpoint.folder / 'config.json'} names the class {stray}, which transformers does not know:"
            f" {type(module).__name__} is taken, by its model_type {checkpoint.config['model_type']!r}",
            stacklevel=2,
        )
    tell_unread(checkpoint.config, module, str(checkpoint.folder / "config.json"))
    tell_length(checkpoint.config, module, str(checkpoint.folder / "config.json"))
    if empty := [tensor for file in checkpoint.weights for tensor in zero_tensors(file)]:
        warnings.warn(
            f"{_where(name, checkpoint.folder)}: nothing but zeros in {listed(empty)}, as in a file that was not"
            " written to its end",
            stacklevel=2,
        )
    suspects = [tensor for file in checkpoint.weights for tensor in nonfinite_tensors(file)]
    check_finite(module, suspects, _where(name, checkpoint.folder))
    if adapter is not None:
        if bad := nonfinite_tensors(adapter.weights):
            raise ModelError(f"{adapter.weights}: NaN or Inf in the weights {listed(sorted(bad))}")
        module = _adapted(module, adapter)
    if where is None:
        module = module.to(device)
    module = module.eval().requires_grad_(False)
    prove_causal(module, name)
    return module


def load_tokenizer_from(folder: Path, trust_remote_code: bool) -> Tokenizer:
    """The tokenizer in a folder; ``ModelError`` where transformers cannot load it."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    try:
        with quiet_transformers(), _without_adapter(folder) as plain:
            untyped: Any = PreTrainedTokenizerFast if is_as_stated(folder) else AutoTokenizer
            found: Tokenizer = untyped.from_pretrained(
                plain, local_files_only=True, trust_remote_code=trust_remote_code
            )
            evaluate(found, str(folder))
            # Some classes take a vocabulary that is not theirs, and fail at the first text.
            found("One text, 1 number.")
            check_added(found, folder)
            return found
    except HarnessError:
        raise
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # damaged files fail in the Rust library (some by a panic), in parsers, in classes
        _blame_config(folder, trust_remote_code)
        raise ModelError(f"{folder}: transformers cannot load the tokenizer: {described(error)}") from error


def _blame_config(folder: Path, trust_remote_code: bool) -> None:
    """``ModelError`` naming ``config.json`` where that is what cannot be read: a tokenizer is found by its help."""
    from transformers import AutoConfig

    if not (folder / "config.json").exists():
        return
    try:
        with quiet_transformers():
            AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=trust_remote_code)
    except ImportError as error:  # one that was interrupted leaves its module broken for the rest of the process
        raise ModelError(
            f"{folder}: a part of transformers, or what the model needs, cannot be imported: {described(error)}"
        ) from error
    except Exception as error:  # values that the class of the model does not take
        raise ModelError(f"{folder / 'config.json'}: transformers cannot read it: {described(error)}") from error


def wrap(source: Source, module: CausalModule, tokenizer: Tokenizer) -> LanguageModel:
    """Module and tokenizer as a model with the fingerprint of everything that it was made from."""
    from lm_audit.models.files.quantised.methods import quantised_by
    from lm_audit.models.generation.stopping import end_ids
    from lm_audit.models.language_model import LanguageModel
    from lm_audit.models.loading.identity.fingerprint import combine_fingerprint, settings_digest, tokenizer_digest

    check_vocabulary(tokenizer, module.get_input_embeddings().num_embeddings, source.spec.text)
    weights = weights_digest(source.checkpoint.weights)
    if source.adapter is not None:
        weights += f" {weights_digest([source.adapter.weights])} {source.adapter.settings}"
    if source.checkpoint.config.get("auto_map"):
        weights += f" {code_digest(source.checkpoint.folder)}"
    fingerprint = combine_fingerprint(weights, settings_digest(module), tokenizer_digest(tokenizer))
    model = LanguageModel(module, tokenizer, name=source.spec.name, fingerprint=fingerprint)
    tell_make(module, source.checkpoint.config, source.checkpoint.folder, source.tokenizer_folder)
    tell_nonsense(module, tokenizer, source.spec.text)
    tell_losses(tokenizer, source.spec.text)
    tell_class(tokenizer, source.tokenizer_folder, source.spec.text, Proofs(model))
    tell_frame(tokenizer, source.tokenizer_folder, source.spec.text)
    tell_words(tokenizer, source.spec.text)
    tell_templates(tokenizer, source.tokenizer_folder)
    tell_dates(tokenizer, source.spec.text)
    tell_ends(tokenizer, end_ids(model), module.get_input_embeddings().num_embeddings, source.spec.text)
    tell_unfollowed(module, source.spec.text)
    model.quantised_by = quantised_by(source.checkpoint.config)
    return model


def described(error: BaseException) -> str:
    """An exception of another library as one line: its kind and the beginning of its message.

    Of an import that failed inside another one what broke first is told too: transformers names its own class alone.
    """
    text = one_line(error)
    told = f"{type(error).__name__}: {text}" if text else type(error).__name__
    cause = error.__cause__ if isinstance(error, ImportError) else None
    return told if cause is None else f"{told} (since {described(cause)})"


def _where(name: str, folder: Path) -> str:
    return f"model {name}" if name == str(folder) else f"model {name} ({folder})"


def _read(
    folder: Path, name: str, checkpoint: Checkpoint, dtype: str, trust_remote_code: bool, device_map: object
) -> tuple[CausalModule, Any, Any]:
    from transformers import AutoModelForCausalLM

    untyped: Any = AutoModelForCausalLM
    with quiet_transformers() as heard:
        try:
            module, report = untyped.from_pretrained(
                folder,
                dtype=torch_dtype(dtype),
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=trust_remote_code,
                device_map=device_map,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # so that they are in the report, which refuses them
                **read_plain(checkpoint.config),
            )
        except HarnessError:
            raise
        except Exception as error:  # configs of wrong values fail wherever a class first computes with them
            told = "; ".join(_rows(text) for text in heard.messages if "LOAD REPORT" in text)
            what = f"{_where(name, checkpoint.folder)}: transformers cannot load it: {described(error)}"
            if named := _named_by(error, checkpoint.config):
                what += f"; config.json has it as {listed(named)}"
            raise ModelError(f"{what}; {told}" if told else what) from error
    return module, report, heard


def _rows(report: str) -> str:
    """The tensors of transformers' table of those that did not fit, and what went wrong with them."""
    lines = report.splitlines()
    rows = [found for line in lines if (found := re.match(r"(\S+) +\| +([A-Z]+)\b", line))]
    errors = [line for line in lines if re.match(r"(\w*Error|Error): ", line)]
    names = dict.fromkeys(f"{row[1]} ({row[2]})" for row in rows)
    return "; ".join([listed(list(names)), *map(one_line, dict.fromkeys(errors[:3]))])


def _check_rotation(module: CausalModule, checkpoint: Checkpoint) -> None:
    """``ModelError`` for rotary settings of kinds of layers in the config of an architecture that has no kinds."""
    if unread := unread_rotations(text_config(module.config)):
        raise ModelError(
            f"{checkpoint.folder / 'config.json'}: rope_parameters has settings for {listed(unread)}, and"
            f" {type(module).__name__} knows no such layers; expected one object of settings"
        )


def _named_by(error: Exception, config: Mapping[str, Any]) -> list[str]:
    """The settings whose value is the key that was not found: a name of a function that does not exist, for one."""
    missed = error.args[0] if isinstance(error, KeyError) and error.args else None
    return [key for key, value in config.items() if missed is not None and value == missed]


def _count_decoder_layers(module: CausalModule) -> None:
    """Let decoders of encoder-decoder families (BART's kin), loaded alone, count their own layers.

    Their configurations say ``num_hidden_layers`` of the encoder, by which transformers sizes the decoder's cache.
    """
    parts: Iterable[Any] = module.modules()
    for config in {id(part.config): part.config for part in parts if hasattr(part, "config")}.values():
        layers = getattr(config, "decoder_layers", None)
        if isinstance(layers, int) and getattr(config, "num_hidden_layers", layers) != layers:
            config.num_hidden_layers = layers


def _adapted(module: CausalModule, adapter: Adapter) -> CausalModule:
    from lm_audit.models.loading.adapters import with_adapter

    if any(parameter.device.type == "meta" for parameter in module.parameters()):
        where = ", ".join(f"{many} on {device}" for device, many in places(module).items())
        raise ModelError(
            f"{adapter.folder}: parts of its base are read only when they are computed ({where}): an adapter cannot "
            "be merged into those; leave out the device map, use more GPUs, or merge it yourself and name the result"
        )
    try:
        with quiet_transformers():
            return with_adapter(module, adapter)
    except HarnessError:
        raise
    except Exception as error:  # whatever PEFT meets in settings or tensors of another model
        raise ModelError(f"{adapter.folder} does not fit its base {adapter.base}: {described(error)}") from error


@contextmanager
def _without_adapter(folder: Path) -> Iterator[Path]:
    """The folder or, since transformers would apply adapter files in it, one that shows all of it but those."""
    if not (folder / CONFIG).exists():
        yield folder
        return
    with tempfile.TemporaryDirectory() as scratch:
        for path in folder.iterdir():
            if path.name not in (CONFIG, WEIGHTS, "adapter_model.bin"):
                (Path(scratch) / path.name).symlink_to(path.resolve())
        yield Path(scratch)
