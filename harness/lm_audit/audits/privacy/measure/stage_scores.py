"""All that is measured on one stage: one pass of the scoring engine, then generation where it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lm_audit.audits.privacy.data.canaries import Canary
from lm_audit.audits.privacy.data.manifest import Manifest
from lm_audit.audits.privacy.measure.exact_exposure import exact_exposure, is_enumerable
from lm_audit.audits.privacy.measure.extract import extraction
from lm_audit.audits.privacy.measure.scores import calibrate, tabulate
from lm_audit.audits.privacy.measure.source_extraction import given_back
from lm_audit.audits.privacy.measure.stress import Variant, stress_variants, variant_row
from lm_audit.audits.privacy.measure.token_scores import TextScores, score_tokens
from lm_audit.errors import DataError
from lm_audit.shared.number_checks import check_number, check_seed, check_whole

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.models import LanguageModel
    from lm_audit.models.scoring import Bos

PRIMARY_SCORE = "span_mean_logprob"
"""The score that membership is judged by: the secret's own tokens; the calibrated one stands beside it."""
PREFIXES = ("carrier", "third", "half")
MIN_SCORED = 8
"""A canary of fewer scored tokens says too little: a single token has no spread, and a prefix of it no suffix."""


@dataclass(frozen=True)
class ScoringOptions:
    """What to measure beyond the pass of the scoring engine.

    ``limit``: at most so many members and as many twins, drawn by ``seed`` (``None``: all); ``samples``: sampled
    continuations a member (0: greedy only); ``exact_positions``: last characters of the secret whose candidates are all
    scored for exact exposure (0: none); ``source_extraction``: also the source design's test by generation; ``stress``:
    the six prompt variants; ``bos`` as in :func:`score_texts`.
    """

    limit: int | None = None
    samples: int = 0
    exact_positions: int = 0
    temperature: float = 1.0
    source_extraction: bool = True
    stress: bool = True
    seed: int = 0
    bos: Bos = "default"

    def __post_init__(self) -> None:
        check_whole("samples", self.samples, 0, 10**6)
        check_whole("exact_positions", self.exact_positions, 0, 64)
        check_number("temperature", self.temperature, above=0)
        check_seed("seed", self.seed)


@dataclass(frozen=True, eq=False)
class StageScores:
    """Tables of one stage.

    ``canaries``: one row a canary (``item``, ``role``, ``repetitions``, metrics, extraction flags); ``documents``:
    the same metrics of ordinary training texts; ``stress``: one row a canary and variant.
    """

    stage: str
    canaries: pd.DataFrame
    documents: pd.DataFrame
    stress: pd.DataFrame
    fingerprint: str

    def of(self, role: str) -> pd.DataFrame:
        """Canary rows of one role, ``member`` or ``control``."""
        return self.canaries[self.canaries["role"] == role]


def score_stage(
    model: LanguageModel,
    stage: str,
    manifest: Manifest,
    documents: Sequence[str] = (),
    *,
    reference: StageScores | None = None,
    options: ScoringOptions | None = None,
) -> StageScores:
    """Score every canary (members and twins), the documents and the prompt variants of one stage.

    ``reference``: the scores of the base stage, for the calibrated columns. Raises ``DataError`` for a canary with
    fewer than 8 scored tokens.
    """
    import pandas as pd

    chosen = options or ScoringOptions()
    canaries = list(manifest.canaries)
    variants = stress_variants(manifest.members) if chosen.stress else []
    scored, lowered, ordinary, stressed = _one_pass(model, canaries, documents, variants, chosen.bos)
    _require_length(canaries, scored)
    table = tabulate(scored, lowered, [canary.secret_span for canary in canaries])
    if reference is not None:
        table = calibrate(table, reference.canaries)
    table = pd.concat([_identity(canaries), table], axis=1)
    table = with_extras(table, model, canaries, scored, chosen)
    document_table = tabulate(ordinary, ordinary, [None] * len(documents)) if documents else pd.DataFrame()
    stress = pd.DataFrame([variant_row(v, s) for v, s in zip(variants, stressed, strict=True)])
    return StageScores(stage, table, document_table, stress, model.fingerprint)


def _one_pass(
    model: LanguageModel,
    canaries: Sequence[Canary],
    documents: Sequence[str],
    variants: Sequence[Variant],
    bos: Bos,
) -> tuple[list[TextScores], list[TextScores], list[TextScores], list[TextScores]]:
    texts = [canary.text for canary in canaries]
    groups = [texts, [text.lower() for text in texts], list(documents), [variant.text for variant in variants]]
    flat = score_tokens(model, [text for group in groups for text in group], bos=bos)
    parts, start = [], 0
    for group in groups:
        parts.append(flat[start : start + len(group)])
        start += len(group)
    return parts[0], parts[1], parts[2], parts[3]


def _identity(canaries: Sequence[Canary]) -> pd.DataFrame:
    import pandas as pd

    names = ("id", "family", "role", "repetitions")
    rows = [{("canary_id" if n == "id" else n): getattr(canary, n) for n in names} for canary in canaries]
    return pd.DataFrame(rows)


def _require_length(canaries: Sequence[Canary], scored: Sequence[TextScores]) -> None:
    for canary, scores in zip(canaries, scored, strict=True):
        if len(scores.logprobs) < MIN_SCORED:
            count = len(scores.logprobs)
            raise DataError(f"canary {canary.id} has {count} scored tokens, at least {MIN_SCORED} are needed")


def with_extras(
    table: pd.DataFrame,
    model: LanguageModel,
    canaries: Sequence[Canary],
    scored: Sequence[TextScores],
    options: ScoringOptions,
) -> pd.DataFrame:
    """The canaries' table with what comes back from each prefix, and of members what else the options ask for."""
    added: dict[str, Any] = {}
    for prefix in PREFIXES:
        found = extraction(model, canaries, prefix_tokens=prefix, scores=scored, bos=options.bos)
        added[f"extracted_{prefix}"] = found["exact"].to_numpy()
        added[f"matched_{prefix}"] = (found["matched_prefix_tokens"] / found["suffix_len"]).to_numpy()
    table = table.assign(**added)
    planted = [i for i, canary in enumerate(canaries) if canary.role == "member"]
    enumerable = [i for i in planted if is_enumerable(canaries[i])]
    if options.exact_positions and enumerable:
        chosen = [canaries[i] for i in enumerable]
        exact = exact_exposure(model, chosen, positions=options.exact_positions, bos=options.bos)
        table = _add_column(table, enumerable, "exposure_exact", exact["exposure_exact"].tolist())
        table = _add_column(table, enumerable, "exposure_cap", exact["cap"].tolist())
    if options.samples:
        table = _add_column(table, planted, "sampled_hits", _sampled(model, canaries, scored, planted, options))
    if options.source_extraction:
        given = given_back(model, [scored[i].encoded for i in planted])
        table = _add_column(table, planted, "source_extracted", [found.extracted for found in given])
        if any(found.thought is not None for found in given):
            table = with_thoughts(table, canaries, planted, [found.thought for found in given])
    return table


def with_thoughts(
    table: pd.DataFrame, canaries: Sequence[Canary], planted: Sequence[int], thoughts: Sequence[str | None]
) -> pd.DataFrame:
    """Columns ``thought`` and ``secret_in_thought``: a secret that is thought of and not said is kept apart."""
    import pandas as pd

    texts: list[str | None] = [None] * len(table)
    for row, thought in zip(planted, thoughts, strict=True):
        texts[row] = thought
    pairs = zip(planted, thoughts, strict=True)
    inside = [thought is not None and canaries[row].secret in thought for row, thought in pairs]
    return _add_column(table, planted, "secret_in_thought", inside).assign(thought=pd.Series(texts, dtype=object))


def _sampled(
    model: LanguageModel,
    canaries: Sequence[Canary],
    scored: Sequence[TextScores],
    planted: Sequence[int],
    options: ScoringOptions,
) -> list[float]:
    found = extraction(
        model,
        [canaries[i] for i in planted],
        prefix_tokens="third",
        samples=options.samples,
        temperature=options.temperature,
        seed=options.seed,
        bos=options.bos,
        scores=[scored[i] for i in planted],
    )
    shares: list[float] = (found["sampled_hits"] / options.samples).tolist()
    return shares


def _add_column(table: pd.DataFrame, rows: Sequence[int], name: str, values: Sequence[float]) -> pd.DataFrame:
    column = [float("nan")] * len(table)
    for row, value in zip(rows, values, strict=True):
        column[row] = float(value)
    return table.assign(**{name: column})
