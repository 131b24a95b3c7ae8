"""Winogender sentences as coreference questions (Rudinger et al. 2018).

``sentid`` carries everything: occupation, participant, which of them is meant, and the pronoun's gender.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lm_audit.audits.bias.benchmarks.exclusions import Exclusion, parse_each
from lm_audit.audits.bias.benchmarks.published_columns import published_rows
from lm_audit.audits.bias.benchmarks.text_fields import text_field
from lm_audit.audits.bias.benchmarks.wino.coreference import Question
from lm_audit.errors import DataError
from lm_audit.shared.number_checks import real_number
from lm_audit.shared.textfiles import table_rows

GENDERS = ("male", "female", "neutral")
_PRONOUN = {
    "male": re.compile(r"\b(he|him|his)\b"),
    "female": re.compile(r"\b(she|her|hers)\b"),
    "neutral": re.compile(r"\b(they|them|their|theirs)\b"),
}


@dataclass(frozen=True)
class WinogenderItem:
    """A question; candidate 0 is the occupation, candidate 1 the participant. ``template`` is shared by the genders."""

    question: Question
    template: str
    occupation: str
    gender: str

    @property
    def refers_to_occupation(self) -> bool:
        """Whether the occupation is the right antecedent."""
        return self.question.answer == 0


def parse_winogender(rows: Iterable[Mapping[str, object]]) -> tuple[list[WinogenderItem], list[Exclusion]]:
    """The usable sentences, and those that are not usable with the reason for each."""
    return parse_each(
        published_rows(rows, "winogender"),
        _item,
        lambda item: replace(item, template="", question=replace(item.question, item="", answer=0)),
        lambda item: item.question.candidates[item.question.answer],
    )


def _item(row: Mapping[str, object], _number: int) -> WinogenderItem:
    identifier, sentence = text_field(row, "sentid"), text_field(row, "sentence")
    parts = identifier.removesuffix(".txt").split(".")
    if len(parts) != 4 or parts[2] not in ("0", "1") or parts[3] not in GENDERS:
        raise DataError(f"is {identifier!r}; OCCUPATION.PARTICIPANT.0|1.GENDER.txt is expected", field="sentid")
    occupation, participant, answer, gender = parts
    pronoun = _PRONOUN[gender].search(sentence)
    if pronoun is None:
        raise DataError(f"{sentence!r} has no {gender} pronoun", field="sentence")
    other = "someone" if participant == "someone" else f"the {participant}"
    return WinogenderItem(
        question=Question(identifier, sentence, pronoun.group(1), (f"the {occupation}", other), int(answer)),
        template=".".join(parts[:3]),
        occupation=occupation,
        gender=gender,
    )


def load_occupation_stats(path: str | Path) -> dict[str, float]:
    """Percent of women in each occupation (``bls_pct_female``), from the corpus' own table.

    Raises ``DataError`` with the row where a column is absent or no number.
    """
    path = Path(path)
    stats: dict[str, float] = {}
    for number, row in table_rows(path, "\t"):
        name, stated = row.get("occupation"), row.get("bls_pct_female")
        if not name or not stated:
            raise DataError("needs the columns occupation and bls_pct_female", file=path, row=number)
        try:
            share = real_number(least=0, most=100)(stated)
        except ArgumentTypeError as error:
            raise DataError(
                f"is {stated!r:.40}; a percentage is needed", file=path, row=number, field="bls_pct_female"
            ) from error
        if name in stats:
            raise DataError(f"has the occupation {name!r} a second time", file=path, row=number, field="occupation")
        stats[name] = share
    return stats
