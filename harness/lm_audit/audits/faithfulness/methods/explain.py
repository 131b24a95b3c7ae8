"""One interface to all attribution methods, and one forward pass for all of them.

``attribute`` explains one passage with one method; ``Explainer`` keeps the passage and its trace for several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lm_audit.audits.faithfulness.attribution import Attribution
from lm_audit.audits.faithfulness.methods.matrices import method_named
from lm_audit.audits.faithfulness.methods.method_options import Options, check_options
from lm_audit.audits.faithfulness.methods.traced import TracedPassage
from lm_audit.audits.faithfulness.passage.spans import Span, checked_span
from lm_audit.audits.faithfulness.passage.tokens import Prompt

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel


class Explainer(TracedPassage):
    """A model and a passage; the forward pass is made on first need and then serves every method."""

    def attribute(
        self,
        method: str,
        *,
        sink: Span | None = None,
        thinking: Span | None = None,
        hops: int = 1,
        eps: float | None = None,
        objective: str = "logit",
        reduce: str = "sum",
        score_mode: str = "generated",
        negatives: str = "drop",
        normalise: bool = True,
        variant: str | None = None,
        weights: Sequence[float] | None = None,
        baseline: str = "eos",
        points: int = 20,
        tolerance: float | None = None,
        threshold: float = 0.0,
    ) -> Attribution:
        """See :func:`attribute`."""
        run = method_named(method)
        length = len(self.passage.generation_ids)
        chosen = (0, self.passage.answer_end) if sink is None else checked_span(sink, length, "sink")
        inner = chosen if thinking is None else checked_span(thinking, length, "thinking")
        options = Options(
            chosen,
            inner,
            sink is not None,
            hops,
            eps,
            objective,
            reduce,
            score_mode,
            negatives,
            normalise,
            variant,
            None if weights is None else tuple(float(weight) for weight in weights),
            baseline,
            points,
            tolerance,
            threshold,
        )
        check_options(method, options)
        outcome = run(self, options)
        return Attribution(
            method=method,
            rows=outcome.matrix,
            passage=self.passage,
            sink=chosen,
            thinking=None if thinking is None else inner,
            vector=outcome.vector,
            hops=outcome.hops,
            details=outcome.details or {},
        )


def attribute(
    model: LanguageModel,
    prompt: Prompt,
    generation: str | Sequence[int],
    method: str,
    *,
    sink: Span | None = None,
    thinking: Span | None = None,
    hops: int = 1,
    eps: float | None = None,
    objective: str = "logit",
    reduce: str = "sum",
    score_mode: str = "generated",
    negatives: str = "drop",
    normalise: bool = True,
    variant: str | None = None,
    chat: bool = False,
    **more: Any,
) -> Attribution:
    """The attribution of a generation to the tokens before it, G x (P_user + G).

    ``sink`` and ``thinking`` are inclusive spans of generated tokens (default: the whole generation without its
    end-of-text token; thinking = sink). ``hops``: recursive hops of the ``ft_*`` methods and ``flashtrace``. ``eps``:
    another epsilon for IFR's norm. ``objective`` ("logit", "logprob") and ``reduce`` ("sum", "l2") shape
    input_x_gradient; ``score_mode`` ("generated", "max") the token that attnlrp explains; ``negatives`` ("drop", "abs")
    and ``normalise`` the hops of ft_attnlrp. ``variant``: ft_ifr "in_all_gen", "stop_words", "split_hop"; ifr
    "output_only"; integrated_gradients "logit" (default: log-probability); ablation "segments:K". ``chat`` puts a text
    prompt into the tokenizer's chat template. More: ``weights`` (one a sink token), ``baseline``, ``points``,
    ``tolerance`` (integrated gradients), ``threshold`` (IFR: smallest proximity that counts, in L1 units).

    A sink makes attnlrp, input_x_gradient and integrated_gradients explain the span's mean objective with one backward
    pass (the same vector in every row of the sink); without one they give a row for each token.

    Raises UsageError for spans, names and lengths that cannot be used and for an option that the method does not read
    and that would change nothing, DataError for text that does not round-trip,
    ModelError for an architecture that is not handled.
    """
    return Explainer(model, prompt, generation, chat=chat).attribute(
        method,
        sink=sink,
        thinking=thinking,
        hops=hops,
        eps=eps,
        objective=objective,
        reduce=reduce,
        score_mode=score_mode,
        negatives=negatives,
        normalise=normalise,
        variant=variant,
        **more,
    )
