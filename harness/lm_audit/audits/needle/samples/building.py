"""One sample: needles drawn, a window of the haystack fitted round them, the finished prompt measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lm_audit.audits.needle.haystack.fitting import Fitted, Fitter
from lm_audit.audits.needle.haystack.text import Haystack
from lm_audit.audits.needle.haystack.windows import Piece
from lm_audit.audits.needle.samples.drawing import derived_rng, draw_distinct
from lm_audit.audits.needle.samples.frame import MESSAGES, Frame, frame_of
from lm_audit.audits.needle.samples.prompt_tokens import Measured, is_additive, measure_seams, measure_whole
from lm_audit.audits.needle.samples.sample import GENERATOR_VERSION, Sample, hash_ids, hash_text
from lm_audit.audits.needle.samples.sequences import spread_depths
from lm_audit.audits.needle.samples.task import SEAMS_FROM, BuildOptions, NeedleTask
from lm_audit.audits.needle.samples.wording import Needle, Task, needle_sentence, parse_needle, task_wording
from lm_audit.errors import DataError, UsageError


@dataclass(frozen=True)
class Hidden:
    """Needles in the order of their depths' list, the wording that asks for them, and the values that answer."""

    needles: tuple[Needle, ...]
    task: Task
    outputs: tuple[str, ...]
    kind: tuple[str, str]


def build_sample(
    haystack: Haystack,
    *,
    length: int,
    depth: float | Sequence[float],
    needle: str | Needle | NeedleTask,
    seed: int = 0,
    index: int = 0,
    question: str | None = None,
    answers: Sequence[str] | None = None,
    options: BuildOptions | None = None,
    **changes: Any,
) -> Sample:
    """A prompt of ``length`` tokens (the answer's included, at most 2 below) with its needle at ``depth`` percent.

    ``needle`` is a :class:`NeedleTask`, whose keys and values are drawn by ``seed``, or the needle itself; one in other
    wording than RULER's needs ``question`` and ``answers`` (without them the prompt asks for the sentence that does not
    belong). ``depth`` may list one depth a needle. ``changes`` are fields of :class:`BuildOptions`. ``DataError`` for a
    needle that the haystack contains and a length too short for the task, with the smallest that is feasible.
    """
    chosen = replace(options or BuildOptions(), **changes)
    first = depth if isinstance(depth, int | float) else depth[0]
    name = (length, float(first), index, chosen.subset)
    hidden = _hidden(haystack, needle, seed, name, chosen, question, answers)
    depths = _depths(depth, len(hidden.needles), seed, name, chosen)
    maker = _Maker(haystack, hidden, depths, chosen, length)
    fitted = maker.fit(seed, name)
    return maker.sample(fitted, index)


class TooShort(DataError):
    """A length in which the task has no room; ``smallest`` is the least that has."""

    def __init__(self, length: int, smallest: int):
        super().__init__(
            f"length {length} is too short: wording, needles and answer alone take {smallest - 1} tokens; "
            f"the smallest feasible length is {smallest}"
        )
        self.smallest = smallest


@dataclass
class _Maker:
    haystack: Haystack
    hidden: Hidden
    depths: Sequence[float]
    options: BuildOptions
    length: int

    def __post_init__(self) -> None:
        task = self.hidden.task.on_one_line() if self.options.one_line else self.hidden.task
        self.frame: Frame = frame_of(
            self.options.template,
            self.haystack.encoder.tokenizer,
            self.options.chat_args,
            thinking=self.options.thinking,
        )
        self.head = self.frame.before + task.opening
        # Behind an opened thought the start of the answer would be read as part of the thought.
        # A message of the user's cannot begin the answer either.
        begun = self.frame.opened is None and self.frame.name != MESSAGES
        self.prefix = task.answer_prefix if begun else ""
        self.tail = task.question + self.frame.after + self.prefix
        self.needles = [needle.text for needle in self.hidden.needles] if self.options.planted else []

    def fit(self, seed: int, name: tuple[Any, ...]) -> Fitted:
        haystack = self.haystack
        bare = haystack.encoder.count(
            self.head + haystack.joiner.join(self.needles) + self.tail, special=self.frame.special
        )
        room = self.length - self.options.tokens_to_generate - self.frame.extra
        if bare >= room:
            smallest = bare + 1 + self.options.tokens_to_generate + self.frame.extra
            raise TooShort(self.length, smallest)
        start = _window_start(haystack, room - bare, seed, name, self.options.windows)
        depths = self.depths if self.needles else ()
        fitter = Fitter(haystack, self.needles, depths, self.options.boundary, room, self.measure)
        return fitter.fit(start, bare)

    def measure(self, pieces: Sequence[Piece]) -> Measured:
        special, haystack = self.frame.special, self.haystack
        if self.options.verify == "auto" and self.length >= SEAMS_FROM and is_additive(haystack):
            measured = measure_seams(haystack, self.head, pieces, self.tail, special=special)
            if measured is not None:
                return measured
        return measure_whole(haystack.encoder, self.head, pieces, self.tail, special=special)

    def sample(self, fitted: Fitted, index: int) -> Sample:
        measured, hidden = fitted.measured, self.hidden
        text = self.head + "".join(piece.text for piece in fitted.pieces) + self.tail
        _check_once(text, self.needles)
        count = len(self.needles)
        actual = [measured.depth(number) for number in range(count)]
        positions = [begin for begin, _ in measured.needles]
        return Sample(
            index=index,
            input=text[: len(text) - len(self.prefix)] if self.prefix else text,
            outputs=hidden.outputs,
            length=self.length,
            actual_length=len(measured) + self.frame.extra + self.options.tokens_to_generate,
            target_position=float(self.depths[0]),
            actual_position=actual[0] if actual else -1.0,
            needle_token_position=positions[0] if positions else -1,
            answer_prefix=self.prefix,
            target_positions=tuple(float(depth) for depth in self.depths[: count or 1]),
            actual_positions=tuple(actual),
            needle_token_positions=tuple(positions),
            needle_spans=measured.needles,
            needles=tuple(self.needles),
            tokens_to_generate=self.options.tokens_to_generate,
            haystack_tokens=measured.haystack_tokens,
            ids_sha256=hash_ids(measured.ids),
            text_sha256=hash_text(text),
            metadata=self._metadata(fitted),
        )

    def _metadata(self, fitted: Fitted) -> dict[str, Any]:
        return {
            "haystack_type": self.haystack.name,
            "needle_type_k": self.hidden.kind[0],
            "needle_type_v": self.hidden.kind[1],
            "keys": [needle.key for needle in self.hidden.needles],
            "template": self.frame.name,
            **({"chat_args": dict(self.options.chat_args)} if self.options.chat_args else {}),
            "add_special_tokens": self.frame.special,
            "boundary": self.options.boundary,
            "window_start": fitted.window.start,
            "window_units": fitted.window.units,
            **({"windows": "shared"} if self.options.windows == "shared" else {}),
            "planted": self.options.planted,
            "generator_version": GENERATOR_VERSION,
        }


def _hidden(
    haystack: Haystack,
    needle: str | Needle | NeedleTask,
    seed: int,
    name: tuple[Any, ...],
    options: BuildOptions,
    question: str | None,
    answers: Sequence[str] | None,
) -> Hidden:
    if isinstance(needle, NeedleTask):
        return _draw(haystack, needle, seed, name, options.language)
    text = needle.text if isinstance(needle, Needle) else needle.strip()
    if not text:
        raise DataError("is empty; expected a sentence", field="needle")
    if not haystack.free_of(text):
        raise DataError(f"{text!r} occurs in the haystack {haystack.name}; hide one that does not", field="needle")
    parsed = parse_needle(text)
    if parsed and question is None and answers is None:
        kind, found = parsed
        return Hidden((found,), task_wording(kind, [found.key], 1), (found.value,), ("own", kind))
    value = needle.value if isinstance(needle, Needle) else text
    asked = question or "Which sentence does not belong in the provided text? Quote it."
    task = Task("Read the following text. I will ask you about it afterwards.\n", f"\n{asked}", "")
    key = needle.key if isinstance(needle, Needle) else ""
    return Hidden((Needle(text, key, value),), task, tuple(answers or (value,)), ("own", "own"))


def _draw(haystack: Haystack, task: NeedleTask, seed: int, name: tuple[Any, ...], language: str) -> Hidden:
    """Keys and values by the sample's own generator; needles of the keys asked for come first."""
    rng = derived_rng(seed, *name, "needles")
    keys = draw_distinct(rng, task.type_k, task.keys, absent_from=haystack.free_of)
    values = draw_distinct(rng, task.type_v, task.keys * task.num_v, taken=keys, absent_from=haystack.free_of)
    asked = rng.sample(range(len(keys)), task.num_q)
    order = asked + [number for number in range(len(keys)) if number not in asked]
    needles = [
        Needle(needle_sentence(task.type_v, keys[k], value, language), keys[k], value)
        for k in order
        for value in values[k * task.num_v : (k + 1) * task.num_v]
    ]
    wording = task_wording(task.type_v, [keys[k] for k in asked], task.num_v, language)
    outputs = tuple(needle.value for needle in needles[: task.num_q * task.num_v])
    return Hidden(tuple(needles), wording, outputs, (task.type_k, task.type_v))


def _depths(
    depth: float | Sequence[float], count: int, seed: int, name: tuple[Any, ...], options: BuildOptions
) -> list[float]:
    if isinstance(depth, int | float):
        depths = spread_depths(float(depth), count)
        if options.other_depths == "random" and count > 1:
            rng = derived_rng(seed, *name, "depths")
            depths = [float(depth), *(float(rng.randint(0, 100)) for _ in range(count - 1))]
    else:
        depths = [float(one) for one in depth]
    if len(depths) != count:
        raise UsageError(f"{len(depths)} depths for {count} needles; expected one depth, or one a needle")
    if not all(0 <= one <= 100 for one in depths):
        raise UsageError(f"depth is {depth}; expected 0 to 100 percent")
    return depths


def _window_start(haystack: Haystack, tokens: int, seed: int, name: tuple[Any, ...], windows: str) -> int:
    """Where the haystack begins: a start of a sentence from which the text need not be repeated, if there is one."""
    if windows == "start":
        return 0
    *_, index, subset = name
    parts = name if windows == "independent" else (index, subset)
    starts = haystack.window_starts
    if windows == "independent":
        room = int((haystack.tokens_before(starts) + tokens <= haystack.n_tokens).sum())
        starts = starts[:room] if room else starts
    return int(starts[derived_rng(seed, *parts, "window").randrange(len(starts))])


def _check_once(text: str, needles: Sequence[str]) -> None:
    for needle in needles:
        if text.count(needle) != 1:
            raise DataError(
                f"{needle!r} stands {text.count(needle)} times in the prompt; expected once", field="needle"
            )
