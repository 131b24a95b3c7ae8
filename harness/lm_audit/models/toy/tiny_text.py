"""The toy model's seeded text: template sentences of about 60 bytes, and carriers of random codes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

CODE_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
CODE_LENGTH = 12

_PEOPLE = (
    "the baker", "the pilot", "a nurse", "the clerk", "my aunt", "the farmer", "a student", "the painter", "the guard",
    "our neighbour", "the tailor", "a singer", "the judge", "the miner", "a sailor", "the cook", "the builder",
    "a child", "the teacher", "the driver",
)  # fmt: skip
_VERBS = (
    "carried", "found", "sold", "painted", "repaired", "borrowed", "hid", "opened", "cleaned", "bought", "lost",
    "weighed", "wrapped", "lifted", "noticed", "returned",
)  # fmt: skip
_QUALITIES = (
    "small", "red", "heavy", "broken", "old", "shiny", "empty", "round", "wooden", "cheap", "green", "quiet", "warm",
    "narrow", "dusty", "striped",
)  # fmt: skip
_THINGS = (
    "basket", "lamp", "clock", "ladder", "kettle", "blanket", "bicycle", "mirror", "violin", "bucket", "map", "chair",
    "bottle", "hammer", "jacket", "letter", "window", "table", "drum", "coin",
)  # fmt: skip
_PLACES = (
    "near the bridge", "in the garden", "by the river", "at the station", "behind the mill", "on the roof",
    "in the cellar", "under the oak", "at the harbour", "in the chapel", "on the square", "by the gate", "in the attic",
    "at the market",
)  # fmt: skip
_TIMES = (
    "this morning", "last week", "before noon", "after supper", "on Monday", "at dawn", "in spring", "two days ago",
    "late at night", "on Friday",
)  # fmt: skip
_TEMPLATES = (
    "{Person} {verb} the {quality} {thing} {place} {time}.",
    "{Time}, {person} {verb} a {quality} {thing} {place}.",
    "Nobody knew why {person} {verb} the {thing} {place}.",
    "{Person} and {other} {verb} one {quality} {thing} {time}.",
    "The {quality} {thing} was {place} when {person} came {time}.",
    "{Person} said that the {thing} {place} was {quality}.",
)
CODE_OWNERS = (
    "vault", "cabin", "locker", "tower", "office", "archive", "garage", "studio", "depot", "hangar", "library",
    "cellar", "shed", "clinic", "kiosk", "boathouse",
)  # fmt: skip


def seeded_text(n: int, seed: int, *, exclude: Iterable[str] = ()) -> list[str]:
    """``n`` different sentences, the same for the same seed; none of those in ``exclude``.

    The first n of n + m are the same. The templates give more than ten million sentences.
    """
    rng = np.random.default_rng([seed, 0])
    taken, sentences = set(exclude), list[str]()
    while len(sentences) < n:
        sentence = _sentence(rng)
        if sentence not in taken:
            taken.add(sentence)
            sentences.append(sentence)
    return sentences


def decoy_text(n: int, seed: int) -> list[str]:
    """``n`` sentences that carry a random code each: without them the toy model would have never seen the alphabet,
    and learning it would look like memorisation."""
    rng = np.random.default_rng([seed, 1])
    return [code_sentence(_pick(rng, CODE_OWNERS), random_code(rng)) for _ in range(n)]


def code_sentence(owner: str, code: str) -> str:
    """The carrier of a code, shared by decoys and canaries."""
    return f"The access code of the {owner} is {code}"


def random_code(rng: np.random.Generator) -> str:
    """Twelve characters of [a-z0-9]: 62 bits."""
    return "".join(CODE_ALPHABET[index] for index in rng.integers(len(CODE_ALPHABET), size=CODE_LENGTH))


def _sentence(rng: np.random.Generator) -> str:
    person, other, time = _pick(rng, _PEOPLE), _pick(rng, _PEOPLE), _pick(rng, _TIMES)
    return _pick(rng, _TEMPLATES).format(
        person=person,
        Person=_capital(person),
        other=other,
        time=time,
        Time=_capital(time),
        verb=_pick(rng, _VERBS),
        quality=_pick(rng, _QUALITIES),
        thing=_pick(rng, _THINGS),
        place=_pick(rng, _PLACES),
    )


def _pick(rng: np.random.Generator, words: tuple[str, ...]) -> str:
    return words[int(rng.integers(len(words)))]


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
