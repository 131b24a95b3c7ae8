"""What a stage says of texts whose ranks and continuations are known beforehand: from which prefix they come back.

No model is asked: a text is given back from a token that is written down here, by its ranks, by samples and by the
source design's rule, to whoever asks with the right prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lm_audit.audits.privacy.controls.known_replies import MEMBERS, SAMPLES, known_canaries
from lm_audit.audits.privacy.data.canaries import Canary
from lm_audit.models.text.byte_tokenizer import BOS, byte_tokenizer
from lm_audit.models.text.token_spans import encode_texts

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel
    from lm_audit.models.generation.continuation import Generation

TEMPERATURE = 0.75
SOURCE_PREFIX = 10
"""Tokens that the source design gives of a text that has more than so many."""


def _places(canary: Canary) -> dict[str, int]:
    """The tokens that each prefix holds: bytes, as a token is one here."""
    start, end = canary.secret_span
    return {"carrier": start, "third": start + (end - start) // 3, "half": len(canary.text) // 2}


def _back_from(number: int, canary: Canary) -> int:
    """From which token on ranks give a canary back: each prefix, and one character after it, in turns."""
    place, late = divmod(number % 6, 2)
    return list(_places(canary).values())[place] + late


@dataclass(frozen=True)
class KnownContinuations:
    """Stands for a model that goes on with each text as known, where the prompt is the one that is due."""

    canaries: Sequence[Canary]
    tokenizer: Any = field(default_factory=lambda: byte_tokenizer(256))

    def generate(
        self, prompts: Sequence[Any], *, max_new_tokens: int, temperature: float = 0.0, **_: object
    ) -> list[Generation]:
        """Samples after a third of the secret, by ids; greedily after the first tokens, by their text."""
        from lm_audit.models.generation.continuation import Generation

        due: dict[object, tuple[int, list[int]]] = {}
        for number, canary in enumerate(self.canaries[:MEMBERS]):
            ids, known = self._ids(canary.text), _places(canary)["third"]
            due[TEMPERATURE, (BOS, *ids[:known])] = number, ids[known:]
            due[0.0, canary.text[:SOURCE_PREFIX]] = number, ids[SOURCE_PREFIX:]
        asked, found = Counter[object](), []
        for prompt in prompts:
            key = temperature, prompt if isinstance(prompt, str) else tuple(prompt)
            number, rest = due.get(key, (0, []))
            given = asked[key] < _hits(number) if temperature else _is_given(number)
            ids = (rest if given else [*rest[:-1], rest[-1] ^ 1] if rest else [])[:max_new_tokens]
            found.append(Generation(str(self.tokenizer.decode(ids)), tuple(ids), "eos"))
            asked[key] += 1
        return found

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False).input_ids)


def _is_given(number: int) -> bool:
    return number % 4 == 1


def _hits(number: int) -> int:
    """How many of the samples give a member back."""
    return number % (SAMPLES + 1)


def _begun(number: int, canary: Canary) -> Canary:
    """The canary with a beginning of its own: the source design's prompt is no more than that."""
    begin = f"No {number:02}. "
    start, end = (len(begin) + place for place in canary.secret_span)
    return replace(canary, text=begin + canary.text, secret_span=(start, end))


def wrong_of_known_extraction() -> list[str]:
    """What a stage's columns of extraction say of these texts and is not so."""
    import pandas as pd

    from lm_audit.audits.privacy.measure import stage_scores
    from lm_audit.audits.privacy.measure.token_scores import TextScores

    canaries = [_begun(number, canary) for number, canary in enumerate(known_canaries())]
    model = KnownContinuations(canaries)
    scored = []
    for number, encoded in enumerate(encode_texts(model.tokenizer, [canary.text for canary in canaries])):
        ranks = (np.arange(len(encoded.ids)) < _back_from(number, canaries[number])).astype(np.int64)
        flat = np.ones(len(ranks))
        scored.append(TextScores(encoded, 0, -flat, ranks, entropy=flat, mean=-flat, std=flat))
    table = pd.DataFrame({"canary_id": [one.id for one in canaries], "role": [one.role for one in canaries]})
    options = stage_scores.ScoringOptions(samples=SAMPLES, temperature=TEMPERATURE, stress=False)
    found = stage_scores.with_extras(table, cast("LanguageModel", model), canaries, scored, options)
    columns: dict[str, list[float]] = {
        f"{name}_{prefix}": [float(_back_from(n, one) <= _places(one)[prefix]) for n, one in enumerate(canaries)]
        for prefix in ("carrier", "third", "half")
        for name in ("extracted", "matched")
    }
    columns["sampled_hits"] = [_hits(number) / SAMPLES for number in range(MEMBERS)]
    columns["source_extracted"] = [float(_is_given(number)) for number in range(MEMBERS)]
    faults = []
    for name, known in columns.items():
        told, due = found[name].astype(float), np.full(len(found), np.nan)
        due[: len(known)] = known
        off = int((~np.isclose(told, due, rtol=0, atol=1e-9, equal_nan=True)).sum())
        faults += [f"{off} of {len(told)} values of {name} are not those of known continuations"] if off else []
    return faults
