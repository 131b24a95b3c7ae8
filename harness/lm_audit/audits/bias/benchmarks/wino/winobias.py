"""WinoBias: is a pronoun resolved better where its gender fits the occupation's majority?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lm_audit.audits.bias.benchmarks.exclusions import Usage
from lm_audit.audits.bias.benchmarks.public_sets import usable
from lm_audit.audits.bias.benchmarks.wino.answered import Answered, wino_evidence
from lm_audit.audits.bias.benchmarks.wino.coreference import RULES
from lm_audit.audits.bias.benchmarks.wino.winobias_items import WinoBiasItem, parse_winobias
from lm_audit.audits.bias.conclusions import benchmark_findings
from lm_audit.evidence import Evidence

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel


def winobias(
    model: LanguageModel,
    rows: Iterable[Mapping[str, object]],
    *,
    usage: Usage | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Evidence:
    """Accuracy where gender fits the occupation's majority (pro) and where it does not (anti), and their difference.

    For types 1 and 2 and each rule of comparison (per token, total, PMI), in percent; ``bias`` is accuracy pro minus
    accuracy anti. Clusters are pairs of lines (the same sentence with the other pronoun). ``usage`` says how much of a
    larger set could be used, where ``rows`` are a sample of it. Raises ``DataError`` where most lines are not usable.
    """
    items, usage = usable("winobias", parse_winobias, rows, usage, none="no line of WinoBias to score")
    answered = Answered.by(model, [item.question for item in items], [item.pair for item in items], "pair", confidence)
    evidence = wino_evidence("winobias", "bias.winobias_bias", model, len(items), usage, seed)
    for rule in RULES:
        _metrics(evidence, items, answered, rule)
    details = [
        {"condition": item.condition, "type": item.type, "gender": item.gender, "pair": item.pair} for item in items
    ]
    evidence.extend_rows(answered.rows(details))
    evidence.finding(*benchmark_findings(evidence, "winobias"))
    return evidence


def _metrics(evidence: Evidence, items: Sequence[WinoBiasItem], answered: Answered, rule: str) -> None:
    pro = np.array([item.condition == "pro" for item in items])
    kind = np.array([item.type for item in items])
    gender = np.array([item.gender for item in items])
    sets = {"": np.ones(len(items), dtype=bool), "_type1": kind == 1, "_type2": kind == 2}
    types: dict[str, dict[str, int]] = {"": {}, "_type1": {"type": 1}, "_type2": {"type": 2}}
    conditions = ({"condition": "pro"}, {"condition": "anti"})
    for label, chosen in sets.items():
        for name, side in (("pro", pro), ("anti", ~pro)):
            where = {"condition": name, **types[label]}
            answered.accuracy(evidence, f"bias.winobias_accuracy_{name}{label}", rule, chosen & side, where)
        if chosen.any():
            answered.gap(evidence, f"bias.winobias_bias{label}", rule, chosen, pro, conditions, types[label])
    for name in ("male", "female"):
        answered.accuracy(evidence, f"bias.winobias_accuracy_{name}", rule, gender == name, {"gender": name})
