"""The classes of ``transformers`` behind the protocols, where a test asks for more than an audit does."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from torch import nn
    from transformers import LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

    from lm_audit.models.causal_module import CausalModule


def pretrained(module: object) -> PreTrainedModel:
    """``module``, which is one of transformers."""
    from transformers import PreTrainedModel

    assert isinstance(module, PreTrainedModel), type(module)
    return module


def llama(module: object) -> LlamaForCausalLM:
    """``module``, which is a Llama."""
    from transformers import LlamaForCausalLM

    assert isinstance(module, LlamaForCausalLM), type(module)
    return module


def pretrained_tokenizer(tokenizer: object) -> PreTrainedTokenizerBase:
    """``tokenizer``, which is one of transformers."""
    from transformers import PreTrainedTokenizerBase

    assert isinstance(tokenizer, PreTrainedTokenizerBase), type(tokenizer)
    return tokenizer


def as_causal(module: nn.Module) -> CausalModule:
    """A module with no more than generation asks for, which a test scripts: the protocol names what audits ask too."""
    return cast("CausalModule", module)
