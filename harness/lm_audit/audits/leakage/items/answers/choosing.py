"""Which of several columns holds the answers: the first whose values are answers, by the first rows of a file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lm_audit.audits.leakage.items.answers.readings import LABELS, LETTER, TEXTS
from lm_audit.audits.leakage.items.cells import Unusable
from lm_audit.audits.leakage.items.columns import Columns, rival_readings
from lm_audit.audits.leakage.items.option_lists import Options, options_of
from lm_audit.errors import DataError


def chosen(rows: Sequence[Mapping[str, object]], columns: Columns) -> Columns:
    """The columns with another answer column where the values of the first are no answers and those of another are.

    Columns whose values are none of the options ("hard", a free text) are no rivals.
    """
    candidates = [*([columns.answer] if columns.answer else []), *columns.rivals]
    if not columns.rivals:
        return columns
    filled: Counter[str] = Counter()
    readable: Counter[str] = Counter()
    for row, options in _with_options(rows, columns):
        for name in candidates:
            found = rival_readings(name, row.get(name), options)
            filled[name] += found is None or bool(found)
            readable[name] += bool(found)
    usable = [name for name in candidates if readable[name] and 2 * readable[name] >= filled[name]]
    answer = columns.answer
    if answer is None or (filled[answer] and answer not in usable):
        most = max((readable[name] for name in usable), default=0)
        answer = next((name for name in usable if 2 * readable[name] >= most), answer)
    rivals = tuple(name for name in candidates if name != answer and (name in usable or not filled[name]))
    return replace(columns, answer=answer, rivals=rivals)


_SAYS_SO = re.compile(r"correct|right|answer|solution|gold|正确|答案", re.IGNORECASE)


def unread_answers(rows: Sequence[Mapping[str, object]], columns: Columns) -> str | None:
    """A column of any name that holds letters or texts of options in all rows, else one whose name says that its
    numbers are answers; ``None`` where there is none, and for several of such numbers.
    """
    used = {columns.question, columns.id, columns.subject, columns.context, *columns.options}
    names = dict.fromkeys(name for row in rows for name in row if name not in used)
    numbers = dict.fromkeys(name for name in names if _SAYS_SO.search(name))
    for row, options in _with_options(rows, columns):
        if options.marks:
            return None
        for name in [*(names | numbers)]:
            found = rival_readings(name, row.get(name), options)
            if not found:
                numbers.pop(name, None)
            if not found or not {LABELS, TEXTS, LETTER} & found.keys():
                names.pop(name, None)
    return next(iter([*names, *(numbers if len(numbers) == 1 else ())]), None)


def _with_options(rows: Sequence[Mapping[str, object]], columns: Columns) -> list[tuple[Mapping[str, object], Options]]:
    found = []
    for row in rows:
        try:
            found.append((row, options_of(row, columns.options, columns.labels, columns.padding)))
        except (Unusable, DataError):  # told where the row is read
            continue
    return found
