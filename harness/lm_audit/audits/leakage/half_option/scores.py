"""From hits to scores: of a question, a file, a benchmark; and how far mixing the options lowers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from lm_audit.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

ScoresByFile = Mapping[str, Sequence[float]] | Sequence[Sequence[float]]


def dataset_score(scores_by_file: ScoresByFile, weighting: Literal["items", "files"] = "items") -> float | None:
    """The mean score of a question, from the question scores of every file.

    "items" weights every question alike, ``None`` where there is none. "files" is the published aggregation: the plain
    mean of the files' means, where a file without rows counts as 0. Raises ``UsageError`` for another weighting.
    """
    files = list(scores_by_file.values()) if isinstance(scores_by_file, Mapping) else list(scores_by_file)
    if weighting == "files":
        return sum(_mean(scores) for scores in files) / len(files) if files else None
    if weighting != "items":
        raise UsageError(f"weighting {weighting!r}; it is 'items' or 'files'")
    scores = [score for scores in files for score in scores]
    return _mean(scores) if scores else None


def _mean(scores: Sequence[float]) -> float:
    return float(sum(scores)) / len(scores) if len(scores) else 0.0


def mitigation(original: float, shuffled: float) -> float:
    """Mitigation degree: the score in the published order minus that with the options mixed."""
    return original - shuffled


def mitigation_share(original: float, shuffled: float, chance: float) -> float | None:
    """The part of what exceeds chance that mixing takes away; None where the original does not exceed chance."""
    return (original - shuffled) / (original - chance) if original > chance else None


def question_scores(table: pd.DataFrame) -> pd.DataFrame:
    """One row a question of a :func:`probe` table, in order: ``file, item_id, score`` (hits), ``options``, ``share``.

    ``logprob`` is the mean over options of the suffix's log-probability a byte (nats), where it has bytes.
    """
    filled = table[table["suffix_bytes"] > 0]
    per_byte = filled["suffix_logprob"] / filled["suffix_bytes"]
    groups = table.groupby(["file", "item_id"], sort=False)
    out = groups["hit"].agg(score="sum", options="size").reset_index()
    out["share"] = out["score"] / out["options"]
    means = per_byte.groupby([filled["file"], filled["item_id"]], sort=False).mean().rename("logprob").reset_index()
    return out.merge(means, on=["file", "item_id"], how="left")


def by_file(questions: pd.DataFrame, files: Sequence[str] = ()) -> dict[str, list[float]]:
    """The question scores of each file; ``files`` names those that may have no question."""
    found: dict[str, list[float]] = {name: [] for name in files}
    for name, score in zip(questions["file"], questions["score"], strict=True):
        found.setdefault(str(name), []).append(float(score))
    return found
