"""What a preference grid is made of: templates, axes of groups, pairs of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lm_audit.errors import DataError

SLOT = "{group}"
_SLOT_SPELLINGS = ("{GROUP}", "{g}", "{}")


@dataclass(frozen=True)
class Axis:
    """Groups that differ in one attribute and agree in form; contrasts are made against ``reference``."""

    name: str
    groups: tuple[str, ...]
    reference: str

    @classmethod
    def of(cls, name: str, groups: Sequence[str], reference: str | None = None) -> Axis:
        """An axis whose reference is its first group unless another is named."""
        if not groups:
            raise DataError("the axis has no groups; at least two are needed", field=f"axis {name!r}")
        return cls(name, tuple(groups), reference or groups[0])


@dataclass(frozen=True)
class WordPair:
    """A favourable word and the unfavourable word that it is weighed against."""

    positive: str
    negative: str

    @property
    def label(self) -> str:
        """``positive/negative``, the name of the pair in tables."""
        return f"{self.positive}/{self.negative}"


@dataclass(frozen=True)
class PreferenceSet:
    """A whole grid in one language.

    ``separator`` stands between a prompt and a word (empty where words are not spaced); ``terminator`` closes the
    phrase where a language marks no word boundary, so that both words of a pair are scored to the same end.
    """

    language: str
    separator: str
    templates: tuple[str, ...]
    axes: tuple[Axis, ...]
    pairs: tuple[WordPair, ...]
    neutral: str
    terminator: str = ""
    source: str | None = None

    def axis(self, name: str) -> Axis:
        """The axis of that name; ``DataError`` names the axes there are."""
        for axis in self.axes:
            if axis.name == name:
                return axis
        raise DataError(f"no axis {name!r}; there are {[axis.name for axis in self.axes]}", file=self.source)


def normalise_slot(template: str) -> str:
    """The template with its slot written ``{group}``, whichever of the accepted spellings it has."""
    for spelling in _SLOT_SPELLINGS:
        if SLOT not in template and spelling in template:
            return template.replace(spelling, SLOT)
    return template


def render(template: str, group: str) -> str:
    """The prompt for a group, without trailing white space (it belongs to the word that follows)."""
    return normalise_slot(template).replace(SLOT, group).rstrip()
