"""A measurement that is killed half-way goes on where it stopped: what the model had answered is not asked again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from lm_audit.audits import bias, leakage
from lm_audit.audits.faithfulness import attribute, deletion_curve
from lm_audit.audits.faithfulness.deletion import direct
from lm_audit.audits.privacy import score_texts
from lm_audit.evidence import Evidence
from lm_audit.models import LanguageModel, load_model
from lm_audit.models.toy.tiny_text import seeded_text
from lm_audit.shared.answers import Scope, answers_in, shared_answers

Measure = Callable[[LanguageModel], object]


class Killed(BaseException):
    """What no audit catches."""


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    """Two rows at a time, so that a measurement has a middle."""
    model = load_model("tiny", device="cpu")
    model.batch_tokens = 64
    return model


@contextmanager
def passes(model: LanguageModel, most: float = float("inf")) -> Iterator[list[int]]:
    """The tokens of every forward pass; beyond ``most`` passes the process is as good as killed."""
    seen: list[int] = []

    def count(module: object, given: tuple[object, ...], found: object) -> None:
        if len(seen) >= most:
            raise Killed
        seen.append(int(given[0].numel()))  # type: ignore[attr-defined]  # a tensor of ids

    hook = model.module.get_input_embeddings().register_forward_hook(count)
    try:
        yield seen
    finally:
        hook.remove()


def metrics(found: object) -> object:
    return {name: one.value for name, one in found.metrics.items()} if isinstance(found, Evidence) else found


def grid(model: LanguageModel) -> object:
    axis = bias.Axis("age", ("young", "old"), "young")
    pairs = [bias.WordPair("kind", "cruel"), bias.WordPair("wise", "stupid"), bias.WordPair("good", "bad")]
    templates = ["The {group} person is", "Every {group} neighbour was", "My {group} doctor seemed"]
    return bias.preference_grid(model, templates=templates, axes=[axis], word_pairs=pairs, neutral="other")


def benchmark(model: LanguageModel) -> object:
    pairs = islice(zip(seeded_text(24, 3), seeded_text(24, 4), strict=True), 24)
    rows = [
        {"sent_more": f"{a} one", "sent_less": f"{a} two", "stereo_antistereo": "stereo", "bias_type": b[:3]}
        for a, b in pairs
    ]
    return bias.crows_pairs(model, rows)


def needles(model: LanguageModel) -> object:
    prompts = [list(text.encode()) for text in seeded_text(12, 1)]
    found = model.complete(prompts, [[40, 41]] * 12, max_new_tokens=16, enough=lambda i, said: len(said) > i)
    return {f"{i} {one.text}": one.scores.total for i, one in enumerate(found) if one.scores}


def deletions(model: LanguageModel) -> object:
    text = seeded_text(1, 2)[0]
    curve = deletion_curve(model, text, " again", [float(k % 7) for k in range(len(text))], steps=12)
    return dict(enumerate(curve.scores))


def texts(model: LanguageModel) -> object:
    return dict(score_texts(model, seeded_text(16, 5)).select_dtypes("number").sum())


def draws(model: LanguageModel) -> object:
    found = model.generate(
        [text[:20] for text in seeded_text(12, 6)], max_new_tokens=40, stop=("e",), temperature=1.0, seed=3
    )
    return {f"{index} {one.text}": len(one.token_ids) for index, one in enumerate(found)}


def orders(model: LanguageModel, folder: Path) -> object:
    rows = "".join(f"{text[:20]},red,blue,green,B\n" for text in seeded_text(6, 7))
    file = folder / "soil.csv"
    file.write_text(f"question,A,B,C,answer\n{rows}", encoding="utf-8")
    return leakage.option_order(model, leakage.load_benchmark(file), orders=6)


KINDS: dict[str, Measure] = {
    "bias grid": grid, "bias benchmark": benchmark, "needle": needles, "faithfulness": deletions,
    "privacy scores": texts, "privacy draws": draws,
}  # fmt: skip


@pytest.mark.parametrize("kind", [*KINDS, "leakage"])
def test_what_was_answered_before_a_kill_is_not_asked_again(tmp_path: Path, tiny: LanguageModel, kind: str) -> None:
    def measure() -> object:
        return metrics(orders(tiny, tmp_path) if kind == "leakage" else KINDS[kind](tiny))

    measure()  # what a model is asked once to find its ways
    with passes(tiny) as whole:
        undisturbed = measure()
    assert len(whole) >= 4
    kept = tmp_path / "kept.jsonl"
    with passes(tiny, 3 * len(whole) // 4) as before, pytest.raises(Killed), answers_in(kept):
        measure()
    kept.write_bytes(kept.read_bytes() + b'["0123", [[-1.')  # the line that the killed process was writing
    with passes(tiny) as after, answers_in(kept):
        resumed = measure()
    assert resumed == pytest.approx(undisturbed, abs=1e-4, nan_ok=True)
    # Rows that are decoded side by side and were not at their end when the process was killed begin anew.
    most = 2.0 if kind in ("needle", "privacy draws") else 1.5
    assert 0 < sum(after) < sum(whole) and sum(before) + sum(after) < most * sum(whole)
    with passes(tiny) as again, answers_in(kept):
        assert measure() == pytest.approx(resumed, abs=1e-9, nan_ok=True)
    assert sum(again) == 0


@contextmanager
def layer_passes(model: LanguageModel, most: float = float("inf")) -> Iterator[list[int]]:
    """What goes through the first layer's attention: forward passes, and backward ones, which compute it anew."""
    seen: list[int] = []

    def count(module: object, given: tuple[object, ...], found: object) -> None:
        if len(seen) >= most:
            raise Killed
        seen.append(1)

    projection = model.module.model.layers[0].self_attn.o_proj  # type: ignore[attr-defined]  # the toy's build
    hook = projection.register_forward_hook(count)
    try:
        yield seen
    finally:
        hook.remove()


def attributed(method: str, **options: object) -> Measure:
    def measure(model: LanguageModel) -> object:
        found = attribute(model, seeded_text(1, 8)[0], " again and again", method, sink=(1, 6), **options)  # type: ignore[arg-type]
        return dict(enumerate(found.prompt_weights().tolist())) | {"details": sorted(found.details)}

    return measure


def mean_baseline(model: LanguageModel) -> object:
    text = seeded_text(1, 9)[0]
    weights = [float(k % 5) for k in range(len(text))]
    return dict(enumerate(deletion_curve(model, text, " again", weights, steps=12, baseline="mean").scores))


ATTRIBUTIONS: dict[str, Measure] = {
    "integrated gradients": attributed("integrated_gradients", points=10),
    "gradient": attributed("attnlrp"),
    "hops of gradients": attributed("ft_attnlrp", hops=4, thinking=(0, 4)),
    "flow": attributed("ifr_span"),
    "hops of flow": attributed("flashtrace", hops=4, thinking=(0, 4)),
    "attention": attributed("rollout"),
    "ablation by means": attributed("ablation_clp"),
    "deletion by means": mean_baseline,
}


@pytest.mark.parametrize("kind", ATTRIBUTIONS)
def test_an_attribution_goes_on_where_it_was_killed(
    tmp_path: Path, tiny: LanguageModel, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "BATCH_FLOATS", 1)  # one state at a time, so that a measurement has a middle
    measure = ATTRIBUTIONS[kind]
    with layer_passes(tiny) as whole:
        undisturbed = measure(tiny)
    kept = tmp_path / "kept.jsonl"
    most = 3 * len(whole) // 4
    with layer_passes(tiny, most), pytest.raises(Killed), answers_in(kept):
        measure(tiny)
    with layer_passes(tiny) as after, answers_in(kept):
        assert measure(tiny) == undisturbed
    assert len(after) <= len(whole) - most + 1  # the forward pass that all of an attribution rests on
    with layer_passes(tiny) as again, answers_in(kept):
        assert measure(tiny) == undisturbed
    assert not again


def test_another_call_or_another_scope_gets_none_of_them(tmp_path: Path, tiny: LanguageModel) -> None:
    """A case may ask the same of a model and of the same model changed: its second call is not its first."""
    asked = [("The old", " man"), ("The young", " man")]
    for first in (True, False):
        with passes(tiny) as seen, answers_in(tmp_path / "case.jsonl"):
            tiny.loglikelihood(asked)
            once = len(seen)
            with shared_answers("measured for several cases"):
                tiny.loglikelihood(asked)
            shared = len(seen)
            tiny.loglikelihood(asked)
        assert (once > 0, shared > once, len(seen) > shared) == (first, first, first)
    with passes(tiny) as seen, answers_in(tmp_path / "other.jsonl"):
        tiny.loglikelihood(asked)
    assert seen


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"0.25", b"0.35"), (b"0.25", b"NaN,"), (b"[0.25]", b"[0.25"), (b'{"key', b"{key"), (b',"c":', b',"d":')],
)
def test_a_kept_answer_that_was_changed_is_none(tmp_path: Path, old: bytes, new: bytes) -> None:
    file = tmp_path / "case.jsonl"
    scope = Scope(file)
    scope.call("settings").add([((b"question",), [0.25])])
    scope.close()
    assert Scope(file).call("settings").known(b"question") == [0.25]

    file.write_bytes(b"5\n\xff\n" + file.read_bytes().replace(old, new))

    assert Scope(file).call("settings").known(b"question") is None
