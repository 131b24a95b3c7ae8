"""What is asked of the module of a causal language model: the part of a ``transformers`` model that is used here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from typing import Self

    import torch
    from torch import Tensor, nn


class CausalOutput(Protocol):
    """What a forward pass answers."""

    @property
    def logits(self) -> Tensor:
        """Of the next token, ``[batch, positions, vocabulary]``."""
        ...

    @property
    def past_key_values(self) -> Any:
        """The cache of keys and values; its kind is the model's own."""
        ...


class CausalModule(Protocol):
    """A causal language model of ``transformers``: a ``torch.nn.Module`` with a configuration and embeddings.

    The configuration and the embeddings differ by architecture in what they have; they are read with ``getattr`` where
    not every model has it.
    """

    config: Any
    training: bool

    @property
    def forward(self) -> Callable[..., Any]:
        """What ``__call__`` runs between hooks; its parameters tell what the architecture takes."""
        ...

    @property
    def device(self) -> torch.device:
        """Where its weights lie."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """What its weights are kept in."""
        ...

    def __call__(self, *inputs: Any, **named: Any) -> CausalOutput:
        """A forward pass."""
        ...

    def get_input_embeddings(self) -> Any:
        """The embeddings of its vocabulary, ``weight`` of ``[vocabulary, hidden]``."""
        ...

    def get_output_embeddings(self) -> Any:
        """What makes logits of hidden states, ``weight`` of ``[vocabulary, hidden]``."""
        ...

    def save_pretrained(self, folder: Any, /) -> object:
        """Write weights and configuration as ``transformers`` reads them."""
        ...

    def num_parameters(self) -> int:
        """How many numbers its weights are."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]:
        """As of every module of torch."""
        ...

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """As of every module of torch."""
        ...

    def buffers(self) -> Iterator[Tensor]:
        """As of every module of torch."""
        ...

    def modules(self) -> Iterator[nn.Module]:
        """As of every module of torch."""
        ...

    def named_modules(self) -> Iterator[tuple[str, nn.Module]]:
        """As of every module of torch."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """As of every module of torch."""
        ...

    def load_state_dict(self, state_dict: Mapping[str, Any], /) -> object:
        """As of every module of torch."""
        ...

    def train(self, mode: bool = True) -> Self:
        """As of every module of torch."""
        ...

    def eval(self) -> Self:
        """As of every module of torch."""
        ...

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """As of every module of torch."""
        ...

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As of every module of torch."""
        ...

    def to(self, *place: Any, **named: Any) -> Self:
        """As of every module of torch."""
        ...

    def float(self) -> Self:
        """As of every module of torch."""
        ...


class DecoderModule(CausalModule, Protocol):
    """A causal module with the parts of Llama and its kin, by their names there."""

    model: Any
    lm_head: Any
