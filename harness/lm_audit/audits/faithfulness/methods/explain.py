"""One interface to all attribution methods, and one forward pass for all of them.

``attribute`` explains one passage with one method; ``Explainer`` keeps the passage and its trace for several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from lm_audit.audits.faithfulness.attribution import Attribution
from lm_audit.audits.faithfulness.methods.matrices import method_named
from lm_audit.audits.faithfulness.methods.method_options import Keywords, MethodOptions, options_for
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
        options: MethodOptions | None = None,
        **keywords: Unpack[Keywords],
    ) -> Attribution:
        """See :func:`attribute`."""
        run = method_named(method)
        length = len(self.passage.generation_ids)
        chosen = (0, self.passage.answer_end) if sink is None else checked_span(sink, length, "sink")
        inner = chosen if thinking is None else checked_span(thinking, length, "thinking")
        outcome = run(
            self,
            options_for(method, options, keywords, sink=chosen, thinking=inner, explicit_sink=sink is not None),
        )
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
    chat: bool = False,
    options: MethodOptions | None = None,
    **keywords: Unpack[Keywords],
) -> Attribution:
    """The attribution of a generation to the tokens before it, G x (P_user + G).

    ``sink`` and ``thinking`` are inclusive spans of generated tokens (default: the whole generation without its
    end-of-text token; thinking = sink). ``chat`` puts a text prompt into the tokenizer's chat template. ``options`` is
    the record of the method (:data:`~lm_audit.audits.faithfulness.methods.method_options.OPTIONS` names it), or the
    same by keywords: ``hops`` (recursive hops of the ``ft_*`` methods and ``flashtrace``), ``eps`` and ``threshold``
    (IFR: another epsilon for its norm, the smallest proximity that counts in L1 units), ``objective`` ("logit",
    "logprob"), ``reduce`` ("sum", "l2"), ``score_mode`` ("generated", "max": the token that attnlrp explains),
    ``negatives`` ("drop", "abs") and ``normalise`` (the hops of ft_attnlrp), ``variant`` (ft_ifr "in_all_gen",
    "stop_words", "split_hop"; ifr "output_only"; integrated_gradients "logit" in place of the log-probability; ablation
    "segments:K"), ``weights`` (one a sink token), ``baseline``, ``points`` and ``tolerance`` (integrated gradients).

    A sink makes attnlrp, input_x_gradient and integrated_gradients explain the span's mean objective with one backward
    pass (the same vector in every row of the sink); without one they give a row for each token.

    Raises UsageError for spans, names and lengths that cannot be used and for an option that the method does not read
    and that would change nothing, DataError for text that does not round-trip,
    ModelError for an architecture that is not handled.
    """
    explainer = Explainer(model, prompt, generation, chat=chat)
    return explainer.attribute(method, sink=sink, thinking=thinking, options=options, **keywords)
