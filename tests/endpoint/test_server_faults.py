"""What goes wrong at a server ends as a retry or as one clear error; no answer is lost and nothing hangs."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lm_audit.errors import BudgetError, HarnessError, ModelError, ServerError, UsageError
from lm_audit.models import load_model
from lm_audit.models.endpoint.client.kept import KeptAnswers
from lm_audit.models.endpoint.connecting import connect, find_facts
from lm_audit.models.endpoint.model import EndpointModel
from lm_audit.models.endpoint.settings import EndpointSettings
from tests.endpoint.servers.made_server import Body, Fault, Made, made_server, words

PROMPTS = [f"question number {number}" for number in range(8)]


def settings(folder: Path | None = None, **more: Any) -> EndpointSettings:
    return EndpointSettings(**{"retries": 2, "timeout_s": 120.0, "folder": folder, "repeat_checks": 0, **more})


def hasty(made: Made, timeout_s: float, **more: Any) -> EndpointModel:
    """A model that waits so many seconds for an answer, and took its time to find out what the server can do."""
    facts = find_facts(made.spec, settings())
    made.asked.clear()
    return connect(made.spec, settings(timeout_s=timeout_s, **more), facts)


def ask(made: Made, faults: list[Fault], options: EndpointSettings) -> tuple[Any, list[Any]]:
    """The model and its replies, where the faults come after it was asked what it can do."""
    model = load_model(made.spec, endpoint=options)
    made.asked.clear()
    made.times.clear()
    made.faults = list(faults)
    return model, model.generate(PROMPTS, max_new_tokens=4, chat=True)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=429, headers={"retry-after": "1"}, body='{"error": {"message": "slow down"}}'),
        Fault(status=500, body="<html>oops</html>"),
        Fault(status=503, body=""),
        Fault(drop=True),
        Fault(half=True),
        Fault(body="not JSON at all"),
    ],
    ids=["429", "500", "503", "drop", "half", "no-json"],
)
def test_what_passes_is_asked_again(fault: Fault, tmp_path: Path) -> None:
    with made_server() as made:
        model, replies = ask(made, [fault], settings(tmp_path))
        assert [one.text for one in replies] == [" ".join(reversed(prompt.split())) for prompt in PROMPTS]
        assert model.provenance()["endpoint.retries"] == 1
        assert len(made.asked) == 9
        if fault.status == 429:
            first = next(number for number, body in enumerate(made.asked) if made.asked.count(body) == 2)
            again = len(made.asked) - 1 - made.asked[::-1].index(made.asked[first])
            assert made.times[again] - made.times[first] >= 0.95
    assert len(list(tmp_path.glob("*.jsonl"))) == 1


def test_what_hangs_is_asked_again() -> None:
    with made_server() as made:
        # A busy machine may keep others waiting as well: however often, they are asked again.
        model = hasty(made, 0.5, retries=100)
        made.faults = [Fault(hangs=True)]
        replies = model.generate(PROMPTS, max_new_tokens=4, chat=True)
        assert [one.text for one in replies] == [" ".join(reversed(prompt.split())) for prompt in PROMPTS]
        assert model.provenance()["endpoint.retries"] >= 1
        assert made.asked.count(made.asked[0]) >= 2, "the first one hung"


def test_what_hangs_for_good_is_one_clear_error_and_no_answer_is_lost(tmp_path: Path) -> None:
    with made_server() as made:
        load_model(made.spec, endpoint=settings(tmp_path)).generate(PROMPTS[:3], max_new_tokens=4, chat=True)
        model = hasty(made, 2.0, folder=tmp_path, retries=1, concurrency=1)
        made.faults = [Fault(hangs=True)] * 30
        with pytest.raises(ServerError, match=r"no answer within 2 s, 2 times") as raised:
            model.generate(PROMPTS, max_new_tokens=4, chat=True)
        assert "\n" not in str(raised.value)
        assert made.asked == [made.asked[0]] * 2, "three were answered before, and are not asked again"


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (Fault(status=500, body="oops"), ServerError, "500 after 2 tries: oops"),
        (Fault(status=429, body='{"error": {"message": "busy"}}'), ServerError, "429 after 2 tries: busy"),
        (Fault(drop=True), ServerError, "its reply broke off, or is no HTTP: Server disconnected"),
        (Fault(half=True), ServerError, "answered 2 times with what is no JSON"),
        (Fault(body='{"error": {"message": "out of memory"}}'), ServerError, "200 with an error: out of memory"),
        (Fault(body='{"choices": []}'), ServerError, "holds no choices"),
        (Fault(body="[1, 2]"), ServerError, "holds no choices"),
        (Fault(body="null"), ServerError, "holds no choices"),
        (Fault(status=400, body='{"detail": "max context is 8"}'), ServerError, r"refuses the request \(400\)"),
        (Fault(status=401, body="{}"), UsageError, "refuses the key"),
        (Fault(status=302, headers={"location": "http://elsewhere/"}, body=""), UsageError, "redirects to"),
    ],
    ids=["500", "429", "drop", "half", "error-body", "empty", "list", "null", "400", "401", "302"],
)
def test_what_stays_is_one_clear_error_and_no_answer_is_lost(
    fault: Fault, error: type[HarnessError], message: str, tmp_path: Path
) -> None:
    with made_server() as made:
        good = Fault()
        options = settings(tmp_path, retries=1, concurrency=1)
        with pytest.raises(error, match=message) as raised:
            ask(made, [good, good, good, *[fault] * 30], options)
        assert "\n" not in str(raised.value)
        made.faults = []
        made.asked.clear()
        model = load_model(made.spec, endpoint=options)
        replies = model.generate(PROMPTS, max_new_tokens=4, chat=True)
    assert len(replies) == 8
    questions = [body for _, body in made.asked if "question" in json.dumps(body)]
    assert len(questions) == 5, "three were answered before, and are not asked again"


@pytest.mark.parametrize(
    "message", [{"content": 7}, {"content": {"a": 1}}, "text", None], ids=["number", "mapping", "text", "none"]
)
def test_an_answer_that_is_no_text_is_an_error(message: Any) -> None:
    with made_server() as made:
        model = load_model(made.spec, endpoint=settings())
        made.answer = lambda route, body: {"model": "made", "choices": [{"message": message}]}
        with pytest.raises(ModelError, match="expected"):
            model.generate(["a"], max_new_tokens=1, chat=True)


def test_a_certificate_or_tls_that_fails_is_told() -> None:
    with made_server() as made, pytest.raises(UsageError, match="certificate or TLS fails"):
        load_model(made.spec.replace("http://", "https://"), endpoint=settings())


def test_an_answer_of_another_model_is_refused() -> None:
    with made_server() as made:
        model = load_model(made.spec, endpoint=settings())
        made.answer = lambda route, body: words(route, body) | {"model": "made-mini"}
        with pytest.raises(ServerError, match="came from model 'made-mini', the earlier ones from 'made'"):
            model.generate(["a"], max_new_tokens=1, chat=True)


def test_a_thought_that_comes_apart_is_never_the_answer() -> None:
    def thinking(route: str, body: Body) -> Body:
        said = words(route, body)
        said["choices"][0]["message"] = {"content": "four", "reasoning_content": "two and two"}
        return said

    with made_server() as made:
        model = load_model(made.spec, endpoint=settings())
        made.answer = thinking
        [reply] = model.generate(["2 + 2?"], max_new_tokens=4, chat=True)
        assert (reply.answer, reply.thought) == ("four", "two and two")
        made.answer = lambda route, body: {
            "model": "made",
            "choices": [{"message": {"content": "<think>two and two</think>\n\nfour"}, "finish_reason": "stop"}],
        }
        [reply] = model.generate(["2 + 2?"], max_new_tokens=4, chat=True)
        assert (reply.answer, reply.thought) == ("four", "two and two")
        made.answer = lambda route, body: {
            "model": "made",
            "choices": [{"message": {"content": "", "reasoning": "still thin"}, "finish_reason": "length"}],
        }
        [reply] = model.generate(["2 + 2?"], max_new_tokens=4, chat=True)
        assert (reply.answer, reply.thought) == (None, "still thin")


def test_a_server_that_answers_in_two_ways_is_told_with_the_rate() -> None:
    turns = iter(range(1000))

    def fickle(route: str, body: Body) -> Body:
        said = words(route, body)
        if "number 3" in json.dumps(body):
            said["choices"][0]["message"]["content"] = f"answer {next(turns)}"
        return said

    with made_server(fickle) as made:
        model = load_model(made.spec, endpoint=settings(repeat_checks=10))
        model.generate(PROMPTS, max_new_tokens=4, chat=True)
        told = model.provenance()["endpoint.determinism"]
    assert told.startswith("not deterministic: 1 of 8 greedy requests")


def test_no_more_are_in_flight_than_asked_for_and_equal_prefixes_are_neighbours() -> None:
    four = threading.Event()

    def together(route: str, body: Body) -> Body:
        if made.in_flight == 4:
            four.set()
        assert four.wait(120), "four requests are never in flight"
        return words(route, body)

    prompts = [f"{letter} {number}" for number in range(6) for letter in "abc"]
    expected = [" ".join(reversed(prompt.split())) for prompt in prompts]
    with made_server() as made:
        model = load_model(made.spec, endpoint=settings(concurrency=4))
        made.most_in_flight, made.answer = 0, together
        assert [one.text for one in model.generate(prompts, max_new_tokens=4, chat=True)] == expected
        assert made.most_in_flight == 4
        # Of several in flight one may overtake another.
        model = load_model(made.spec, endpoint=settings(concurrency=1))
        made.asked.clear()
        assert [one.text for one in model.generate(prompts, max_new_tokens=4, chat=True)] == expected
        letters = [body["messages"][0]["content"][0] for _, body in made.asked]
    assert letters == sorted(letters)


def test_a_line_cut_by_a_kill_is_no_answer(tmp_path: Path) -> None:
    kept = KeptAnswers(tmp_path)
    first, second = kept.key({"a": 1}), kept.key({"a": 2})
    kept.put(first, {"text": "é" * 1000})
    kept.put(second, {"text": "b"})
    kept.close()
    [file] = tmp_path.glob("*.jsonl")
    file.write_bytes(file.read_bytes()[:-4])
    again = KeptAnswers(tmp_path, "other")
    assert again.get(first) == {"text": "é" * 1000}
    assert again.get(second) is None
    again.put(second, {"text": "c"})
    assert again.get(second) == {"text": "c"} and KeptAnswers(tmp_path).get(second) == {"text": "c"}


def test_a_kept_answer_that_was_changed_is_none(tmp_path: Path) -> None:
    kept = KeptAnswers(tmp_path)
    key = kept.key({"a": 1})
    kept.put(key, {"logprob": -1.5})
    kept.close()
    [file] = tmp_path.glob("*.jsonl")
    assert KeptAnswers(tmp_path).get(key) == {"logprob": -1.5}
    file.write_bytes(file.read_bytes().replace(b"-1.5", b"-7.5"))
    assert KeptAnswers(tmp_path).get(key) is None


@pytest.mark.parametrize("rest", ["}", ', "answer": null}', ', "answer": ' + "[" * 100_000 + "}"], ids=range(3))
def test_a_kept_line_without_an_answer_is_none(tmp_path: Path, rest: str) -> None:
    key = KeptAnswers(tmp_path).key({"a": 1})
    (tmp_path / "one.jsonl").write_text(f'{{"key": "{key}"{rest}\n')
    assert KeptAnswers(tmp_path).get(key) is None


def test_a_thread_that_runs_a_loop_already_can_ask(tmp_path: Path) -> None:
    async def cell() -> list[Any]:
        with made_server() as made:
            model, replies = ask(made, [], settings(tmp_path))
            with pytest.raises(ServerError, match="503"):
                ask(made, [Fault(status=503, body="")] * 9, settings(retries=0))
            model.close()
            return replies

    # In a thread of its own: a browser's test leaves this one with a loop that runs.
    with ThreadPoolExecutor(1) as pool:
        replies = pool.submit(asyncio.run, cell()).result()
    assert len(replies) == len(PROMPTS) and all(reply.text for reply in replies)


def test_a_budget_that_ends_within_the_repeat_check_costs_no_case() -> None:
    with made_server() as made:
        # Eight prompts of three words: 48 tokens. The budget has room for them and for two or three repeats.
        model = load_model(made.spec, endpoint=settings(repeat_checks=8, budget=60, concurrency=1))
        replies = model.generate(PROMPTS, max_new_tokens=4, chat=True)
        told = model.provenance()["endpoint.determinism"]
        with pytest.raises(BudgetError):
            model.generate(["another"], max_new_tokens=4, chat=True)
    assert len(replies) == len(PROMPTS)
    assert told.startswith("0 of 2 greedy requests") and "the other 6 could not be asked again: budget" in told


def test_a_server_that_breaks_in_the_repeat_check_costs_no_case() -> None:
    with made_server() as made:
        model = load_model(made.spec, endpoint=settings(repeat_checks=8, retries=0))
        made.faults = []
        made.answer = lambda route, body: words(route, body) if len(made.asked) <= before + 8 else {"error": "gone"}
        before = len(made.asked)
        assert len(model.generate(PROMPTS, max_new_tokens=4, chat=True)) == len(PROMPTS)
        told = model.provenance()["endpoint.determinism"]
    assert told.startswith("not known: none of 8 greedy requests could be asked again"), told


@pytest.mark.parametrize(("base", "asked"), [("/v1", False), ("", True), ("/v1/", False)])
def test_a_missing_route_is_blamed_on_the_url_only_where_it_may_be(base: str, asked: bool) -> None:
    with made_server() as made:
        made.faults = [Fault(status=404, body='{"error": {"message": "not found"}}')] * 20
        with pytest.raises(HarnessError) as raised:
            load_model(made.spec.removesuffix("/v1") + base, endpoint=settings())
    assert "not found" in str(raised.value)
    assert ("should the URL end in /v1?" in str(raised.value)) == asked
