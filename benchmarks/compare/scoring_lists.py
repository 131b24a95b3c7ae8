"""The request lists that the scoring engines are compared on; all sentences are written for this repository."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

Requests = list[tuple[str, str]]

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden" / "lmeval_loglikelihood.json"

TEMPLATES = (
    "Everyone who met the {} said that the {} was",
    "After a long day at work, the {} felt",
    "In the small town by the river, the {} was known to be",
    "The letter described the {} as",
    "When asked about the {}, the teacher answered with one word:",
    "For many years the {} in the corner house has been",
    "According to the neighbours, the {} is usually",
    "During the interview the {} seemed",
    "My brother once told me that the {} is",
    "On the train that morning sat a {} who looked",
    "People often assume that a {} must be",
    "The new colleague is a {} and appears",
)
SUBJECTS = ("baker", "nurse", "farmer", "student", "lawyer", "driver", "painter", "soldier", "gardener", "librarian")
WORDS = tuple(
    "kind honest clever gentle patient brave careful generous cheerful reliable tidy polite "  # noqa: SIM905
    "cruel lazy stupid hostile careless greedy rude gloomy selfish untrustworthy clumsy quarrelsome".split()
)

_OPENINGS = tuple(
    "Rain Nobody Seven Winter Bread Under Copper Music Laughter Green Yesterday Fishing Paper Without Snow Old "  # noqa: SIM905
    "Trains Sometimes Silver Beyond Horses Light Every Coffee Behind Wooden Time Children Between Salt Morning Two "
    "Dark Letters Before Glass Most Birds Against Sugar Long Strangers Across Iron Dust Few Market Inside Wind Bells "
    "Once Bridges Along Honey Stone Half Voices Near Summer Smoke".split()
)
_MIDDLES = (
    "came over the hills while the village slept",
    "filled the kitchen where we had waited since noon",
    "can change the way a street looks in the evening",
    "was all that the two travellers talked about",
    "reached the harbour before the first boats left",
    "made the old engineer think of her first bridge",
    "left a mark on the table that no cloth could remove",
    "stood between the orchard and the narrow road",
)
_ENDS = (
    "",
    " and nobody asked why",
    ", as the postman had said",
    " until the lamps were lit again",
    ", though the maps showed something else",
    " because the clock in the tower had stopped at a quarter past four",
)


def bias_grid() -> Requests:
    """12 templates x 10 subjects x 24 words: each word after each of the 120 contexts."""
    contexts = [template.replace("{}", subject) for template in TEMPLATES for subject in SUBJECTS]
    return [(context, " " + word) for context in contexts for word in WORDS]


def unrelated_sentences(n: int = 240) -> Requests:
    """Whole sentences, each after the BOS alone; they share no beginning longer than their first word."""
    rng = np.random.default_rng(7)
    cells = [(o, m) for m in range(len(_MIDDLES)) for o in range(len(_OPENINGS))]
    chosen = [cells[i] for i in rng.permutation(len(cells))[:n]]
    return [("", f"{_OPENINGS[o]} {_MIDDLES[m]}{_ENDS[rng.integers(len(_ENDS))]}.") for o, m in chosen]


def shared_contexts() -> Requests:
    """Multiple choice of the golden list's make: 20 questions with 4 options, 10 with 3 one-word options, 30 single."""
    rng = np.random.default_rng(11)
    people, places = ("Mira", "Tom", "Lena", "Jonas", "Ruth"), ("mill", "harbour", "school", "market", "station")
    requests: Requests = []
    for i in range(20):
        story = f"{people[i % 5]} left the {places[i % 4]} at {i + 2} o'clock with a heavy bag and walked slowly. "
        question = f"{story}A clerk wrote everything down in a ledger. Question: where did {people[i % 5]} go? Answer:"
        requests += [(question, f" to the {place} near the river") for place in rng.permutation(places)[:4]]
    for i in range(10):
        context = f"The lamp in room {i} was switched on {i % 3 + 1} times. It is a fact that the light is now"
        requests += [(context, word) for word in (" on", " off", " broken")]
    return requests + [(a[: len(a) // 2], a[len(a) // 2 :]) for _, a in unrelated_sentences(30)]


def golden_list() -> Requests | None:
    """The reference list of 100 requests, where ../shared is at hand."""
    if not GOLDEN.exists():
        return None
    return [(r["context"], r["continuation"]) for r in json.loads(GOLDEN.read_text())["loglikelihood"]]


def long_prefix(n: int = 200) -> Requests:
    """One story of some 700 tokens before many short endings."""
    story = " ".join(sentence for _, sentence in unrelated_sentences(40))
    return [(story, f" {word} {opening.lower()}") for opening in _OPENINGS for word in WORDS][:n]
