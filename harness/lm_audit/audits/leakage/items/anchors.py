"""Options whose meaning depends on the order of the others: "all of the above", "both A and B", "以上都对".

Such options stay where they are when the others are shuffled, and so does every option that they name by its letter,
and an "N/A" or "None" at the end, behind which no set prints another option.
"""

from __future__ import annotations

import re
from functools import cache

from lm_audit.audits.leakage.items.item import LETTERS, Item
from lm_audit.audits.leakage.items.option_lists import PLACEHOLDERS

_JOIN = r"\s*(?:,|，|、|;|/|&|\+|和|与|及|或|以及|,?\s*\b(?:and|or|nor)\b)\s*"
_HEAD = (
    r"(?:(?:both|either|neither|only|just|all of|none of|not)\s+)?"
    r"(?:(?:the\s+)?(?:options?|answers?|choices?|statements?)\s*|选项|答案|仅|只有|除)?\s*"
)
_VERDICT = r"(?:正确|对|不对|错误|错|是|不是|不正确|成立|不成立|可以|符合|不符合)"
_TAIL = (
    r"\s*(?:选项|两项|三项|项|两者|二者)?\s*(?:(?:only|above|together)\b|"
    r"(?:are|is)\s+(?:both\s+|all\s+)?(?:not\s+)?(?:correct|true|right|wrong|false|incorrect)\b|"
    rf"(?:均|都|皆|全)?{_VERDICT}?)?\s*[.。！!]?"
)


@cache
def _naming(last: str) -> tuple[re.Pattern[str], ...]:
    """The patterns of an option that names others by letters, of which ``last`` is the last there is."""
    upper, lower = f"A-{last}", f"a-{last.lower()}"
    letter = rf"(?:[(（\[]?[{upper}][)）\]]?[.、]?|[(（\[][{lower}][)）\]])"
    listed = rf"{letter}(?:{_JOIN}(?:options?\s+|选项|both\s+)?{letter})+"
    single = (
        rf"(?:(?i:only|just|not|options?|answers?|choices?)\s+{letter}(?:\s+only)?|(?:选项|答案|仅|只有){letter})"
        rf"{_TAIL}|{letter}\s+(?:only|is\s+(?:correct|true|right|wrong|false))|{letter}(?:项)?(?:正确|错误|对|错|不对)"
    )
    run = rf"(?:选项)?[{upper}]{{2,}}(?:两项|三项|项)?(?:均|都|皆|全){_VERDICT}\s*[。.]?"
    return (
        re.compile(rf"^\s*{_HEAD}{listed}{_TAIL}\s*$"),
        re.compile(rf"^\s*(?:{single})\s*[.。]?\s*$"),
        re.compile(rf"^\s*{run}\s*$"),
    )


_ABOVE = re.compile(
    r"\b(?:all|none|any|both|neither|either|some|one|two|three|more than one|each|not? ?any)\s+(?:of\s+)?(?:the\s+)?"
    r"(?:other\s+|two\s+|three\s+)?(?:above|preceding|previous|foregoing|below)\b"
    r"|^\s*(?:all|none|any|both|neither|either)\s+of\s+(?:these|those|them|the\s+(?:other|listed|given|options|choices|"
    r"answers|others))\b[^,;]*$|^\s*the\s+above\s+(?:are|all|options)\b",
    re.IGNORECASE,
)
_ABOVE_ZH = re.compile(
    r"^\s*(?:以上|上述|前述|以下|下列|前面)\s*(?:的?(?:各项|选项|答案|说法|三项|两项|三者|两者|几项|各个选项|所有选项|内容|情况|情形|三种情况))*"
    r"\s*(?:均|都|皆|全|全部|全都|没有|无一|任何|任一|各项|三者|两者|三项|两项)"
    rf"|^\s*(?:均|都|全)(?:{_VERDICT}|不{_VERDICT})\s*[。.]?\s*$|^\s*(?:其他|其余)(?:选项|三项|各项|答案)"
    rf"|(?:以上|上述)(?:各项|选项|答案)?(?:均|都|皆)(?:不是|{_VERDICT})\s*[。.]?\s*$"
)
_SMALL = re.compile(r"[(（\[]([a-z])[)）\]]")
_NAMED = re.compile(r"(?<![A-Za-z])([A-Z])(?![A-Za-z])")
_TEN = LETTERS[9]
"""Letters up to here name options in any set; later ones ("T", "X") only where there are as many options."""


def is_order_dependent(option: str, last: str = _TEN) -> bool:
    """Whether the option speaks of other options by letter or place, so that it must not move when they do."""
    return names_letters(option, last) or bool(_ABOVE.search(option) or _ABOVE_ZH.search(option))


def names_letters(option: str, last: str = _TEN) -> bool:
    """Whether the option names other options by their letters, up to ``last``: "both A and B", "选项A、C均正确"."""
    text = re.sub(r"(?i)\b(both|either|neither|only|just|options?|answers?|choices?)\b", _lower, option)
    return any(pattern.match(text) for pattern in _naming(last))


def anchored_slots(item: Item) -> frozenset[int]:
    """Slots (0-based) that keep their option in any shuffle: order-dependent options and those they name."""
    last = max(_TEN, LETTERS[len(item.options) - 1])
    fixed: set[int] = set(item.held)
    if item.options and item.options[-1].strip().casefold() in PLACEHOLDERS:
        fixed.add(len(item.options) - 1)
    for slot, option in enumerate(item.options):
        if not is_order_dependent(option, last):
            continue
        fixed.add(slot)
        if names_letters(option, last):
            named = [
                *_NAMED.findall(option),
                *(c.upper() for c in _SMALL.findall(option)),
                *(c for run in re.findall(r"[A-Z]{2,}", option) for c in run),
            ]
            fixed.update(LETTERS.index(letter) for letter in named if LETTERS.index(letter) < len(item.options))
    return frozenset(fixed)


def _lower(match: re.Match[str]) -> str:
    return match.group(0).lower()
