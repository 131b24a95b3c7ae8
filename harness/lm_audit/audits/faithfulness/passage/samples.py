"""Samples: prompts with an answer, and where in the prompt the evidence for it lies.

Spans of a sample are half-open character ranges, so that they hold for every tokenizer: evidence in the prompt,
thinking and output in the generation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lm_audit.errors import DataError, UsageError
from lm_audit.models.text.thinking import closings_in, unwrapped
from lm_audit.models.text.thought_markers import MARKERS
from lm_audit.shared.textfiles import read_toml
from lm_audit.shared.textfiles.fields import check_keys, text_field, texts_field

Characters = tuple[int, int]


@dataclass(frozen=True)
class Sample:
    """One prompt to explain; ``generation`` is ``None`` where the model is to answer itself.

    ``evidence`` are character ranges of the prompt, ``thinking`` and ``output`` of the generation; ``None`` where
    unknown: thinking is then found by its tags, and the output is what follows it.
    """

    name: str
    prompt: str
    generation: str | None = None
    evidence: tuple[Characters, ...] = ()
    thinking: Characters | None = None
    output: Characters | None = None


def needle_samples(words: Mapping[str, Any], count: int, seed: int, *, fillers: int = 3) -> list[Sample]:
    """``count`` prompts with one fact among ``fillers`` filler sentences, the same for the same seed."""
    rng = np.random.default_rng([seed, 1])
    return [_needle(words["needle"], f"needle-{number}", fillers, rng) for number in range(count)]


def _needle(words: Mapping[str, Any], name: str, fillers: int, rng: np.random.Generator) -> Sample:
    fields = {"owner": _one(rng, words["owners"]), "number": str(rng.integers(1000, 10000))}
    fact = words["needle"].format(**fields)
    sentences = [str(text) for text in rng.choice(words["fillers"], size=fillers, replace=False)]
    sentences.insert(int(rng.integers(0, fillers + 1)), fact)
    prompt = " ".join(sentences) + "\n" + words["question"].format(**fields) + "\n"
    answer = words["answer"].format(**fields)
    start = answer.index(fields["number"])
    return Sample(name, prompt, answer, (_place(prompt, fact),), output=(start, start + len(fields["number"])))


def hop_samples(words: Mapping[str, object], count: int, seed: int, *, fillers: int = 2) -> list[Sample]:
    """``count`` prompts whose answer needs two facts, with a thinking part that joins them."""
    rng = np.random.default_rng([seed, 2])
    return [_hop(words, f"hops-{number}", fillers, rng) for number in range(count)]


def _hop(words: Mapping[str, Any], name: str, fillers: int, rng: np.random.Generator) -> Sample:
    own = words["hops"]
    giver, taker = (str(person) for person in rng.choice(own["people"], size=2, replace=False))
    fields = {"giver": giver, "taker": taker, "thing": _one(rng, own["things"]), "place": _one(rng, own["places"])}
    facts = [own[part].format(**fields) for part in ("first", "second")]
    sentences = [str(text) for text in rng.choice(words["needle"]["fillers"], size=fillers, replace=False)]
    for fact, at in zip(facts, sorted(rng.integers(0, fillers + 1, size=2)), strict=True):
        sentences.insert(int(at) + (fact is facts[1]), fact)
    prompt = " ".join(sentences) + "\n" + own["question"].format(**fields) + "\n"
    thinking = f"<think>{own['thinking'].format(**fields)}</think>\n"
    answer = own["answer"].format(**fields)
    return Sample(
        name,
        prompt,
        thinking + answer,
        tuple(_place(prompt, fact) for fact in facts),
        thinking=(0, len(thinking)),
        output=(len(thinking), len(thinking) + len(answer)),
    )


def _one(rng: np.random.Generator, words: Sequence[str]) -> str:
    return str(words[int(rng.integers(len(words)))])


def _place(text: str, part: str) -> Characters:
    start = text.index(part)
    return start, start + len(part)


def split_thinking(generation: str, template: str | None = None) -> tuple[Characters | None, Characters]:
    """Thinking and output of a generation by its think tags, as character ranges.

    The thinking reaches from the start to the closing tag and the white space after it, also where the opening tag
    stood in the prompt (as some chat templates have it). ``template`` is the model's chat template: tags that occur
    in it are tried first. Without tags all is output.
    """
    families = dict(closings_in(generation))
    for markers in sorted(families, key=lambda one: (one.close.strip() not in (template or ""), MARKERS.index(one))):
        rest = generation[families[markers] :]
        answer = unwrapped(rest)
        if answer:
            start = generation.index(answer, families[markers])
            stop = len(generation) if answer == rest.strip() else start + len(answer)
            return (0, start), (start, stop)
    return None, (0, len(generation))


def load_words(path: str | Path) -> Mapping[str, Any]:
    """The words of the sample generator; ``DataError`` where a table or key is missing."""
    words = read_toml(path)
    lists = {"needle": ("fillers", "owners"), "hops": ("people", "things", "places")}
    texts = {
        "needle": ("needle", "question", "answer"),
        "hops": ("first", "second", "question", "thinking", "answer"),
    }
    check_keys(words, path, needed=tuple(lists))
    for name in lists:
        table = check_keys(words[name], path, needed=(*lists[name], *texts[name]), where=f"[{name}]")
        for key in lists[name]:
            if not texts_field(table, key, path):
                raise DataError("must be a list with at least one text", file=path, field=f"{name}.{key}")
        for key in texts[name]:
            text_field(table, key, path)
    return words


def generated_samples(kind: str, words: Mapping[str, object], count: int, seed: int) -> list[Sample]:
    """Samples of the kind "needle" or "hops"."""
    makers = {"needle": needle_samples, "hops": hop_samples}
    if kind not in makers:
        raise UsageError(f"no kind of sample {kind!r}; known are {', '.join(makers)}")
    return makers[kind](words, count, seed)
