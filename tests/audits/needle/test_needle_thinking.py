"""A thought is never the answer: in scores, in prompts that open one, in other systems' outputs, in what is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lm_audit.audits.needle import Haystack, ModelAnswerer, build_sample, score_all, score_any, score_boundary
from lm_audit.audits.needle.answers.answerers import Answer
from lm_audit.audits.needle.answers.evaluation import grid_evidence
from lm_audit.audits.needle.answers.outputs import score_outputs
from lm_audit.audits.needle.answers.scores import precision
from lm_audit.audits.needle.grid.cells import score_sample
from lm_audit.audits.needle.samples.sample import json_line
from lm_audit.audits.needle.samples.task import NeedleTask
from lm_audit.errors import DataError
from lm_audit.models import LanguageModel
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from lm_audit.models.text.chat import ChatSettings
from lm_audit.models.text.tokenizer import Tokenizer
from tests.models.pretrained import pretrained_tokenizer
from tests.models.small_models import small_llama

TURNS = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
OPENS = TURNS + "assistant: {% if enable_thinking is not defined or enable_thinking %}<think>\n{% endif %}"
WRONG = "<think>\nThe text mentions 9999999 and 1234567; I take the first.\n</think>\n\nThe number is 9999999."


def tokenizer_that_opens() -> Tokenizer:
    tokenizer = byte_tokenizer(2048)
    pretrained_tokenizer(tokenizer).chat_template = OPENS
    return tokenizer


def sample(**changes: Any) -> Any:
    haystack = Haystack("The grass is green. The sky is blue.", tokenizer_that_opens())
    given = {"length": 900, "depth": 50.0, "needle": NeedleTask(), "seed": 1, "tokens_to_generate": 16}
    return build_sample(haystack, **{**given, **changes})


@pytest.mark.parametrize("scorer", [score_all, score_any, score_boundary])
def test_a_value_in_the_thought_is_not_found(scorer: Any) -> None:
    assert scorer(WRONG, ["1234567"]) == 0.0
    assert scorer(WRONG, ["9999999"]) == 1.0
    assert scorer("<think>It is 1234567", ["1234567"]) == 0.0
    assert precision(WRONG, ["9999999"]) == 1.0


def test_behind_an_opened_thought_the_answer_has_no_prescribed_start() -> None:
    opened, closed = sample(), sample(thinking=False)

    assert opened.prompt.endswith("assistant: <think>\n") and opened.answer_prefix == ""
    assert closed.input.endswith("assistant: <think>\n</think>\n\n") and closed.answer_prefix.endswith("is")
    assert min(closed.actual_length, opened.actual_length) >= 898


def test_arguments_of_the_template_reach_the_prompt() -> None:
    assert sample(chat_args={"enable_thinking": False}).input.endswith("assistant: ")


def test_a_reply_cut_in_its_thought_is_no_answer_and_found_nothing() -> None:
    one = sample()
    said = score_sample(one, Answer(f"I see {one.outputs[0]}", "length", opened="<think>"))
    answered = score_sample(one, Answer(f"Hm\n</think>\n{one.outputs[0]}", "eos", opened="<think>"))

    evidence = grid_evidence([said, answered])

    assert said.scores["all"] == 0.0 and answered.scores["all"] == 1.0
    assert evidence.metrics["needle.no_answer"].value == 0.5 and evidence.metrics["needle.empty_answers"].value == 0.0
    first, second = evidence.rows
    assert (first["no_answer"], first["answer"], second["answer"]) == (True, None, one.outputs[0])
    assert second["thought"] == "Hm" and any("no answer" in note for note in evidence.notes)


def test_a_model_thinks_within_its_budget_and_answers() -> None:
    model = LanguageModel(small_llama(context=2048, initializer_range=0.6), tokenizer_that_opens(), name="small")
    model.chat_settings = ChatSettings({}, 24)
    one = sample()

    (found,) = ModelAnswerer(model).answer([one])

    assert found.opened == "<think>" and found.thought_cut and found.answer is not None
    assert found.value_logprob is None and len(found.text.partition("\n</think>")[0].encode("utf-8", "replace")) >= 24
    (by_generate,) = model.generate([one.prompt.removeprefix("<bos>")], max_new_tokens=16, thinking_tokens=24)
    assert found.thought_cut == by_generate.thought_cut


def test_a_thought_that_does_not_fit_the_context_is_named() -> None:
    model = LanguageModel(small_llama(context=950), tokenizer_that_opens(), name="small")
    model.chat_settings = ChatSettings({}, 100)

    with pytest.raises(
        DataError, match=r"900 tokens, answer included, and its thought of 100 needs 1000 .* at most 950"
    ):
        ModelAnswerer(model).answer([sample()])


def test_outputs_whose_thought_came_apart(tmp_path: Any) -> None:
    one = sample()
    cell = tmp_path / "grid" / "length_000900" / "position_05000.jsonl"
    cell.parent.mkdir(parents=True)
    value = one.outputs[0]
    cell.write_text("".join(json_line(sample(index=index)) + "\n" for index in range(4)), encoding="utf-8")
    ids = [json.loads(line) for line in cell.read_text(encoding="utf-8").splitlines()]
    replies: list[dict[str, Any]] = [
        {"pred": "I do not know.", "reasoning_content": f"It is {ids[0]['outputs'][0]}."},
        {"pred": f"It is {ids[1]['outputs'][0]}.", "reasoning_content": "Hm."},
        {"pred": None, "reasoning_content": f"It is {ids[2]['outputs'][0]}"},
        {"pred": f"Hm {value} </think> {ids[3]['outputs'][0]}"},
    ]
    outputs = tmp_path / "outputs.jsonl"
    lines = [json.dumps({"id": one["id"], **reply}) for one, reply in zip(ids, replies, strict=True)]
    outputs.write_text("\n".join(lines), encoding="utf-8")

    scored = score_outputs(tmp_path / "grid", outputs)

    assert [found.scores["all"] for found in scored] == [0.0, 1.0, 0.0, 1.0]
    assert {found.answer.finish for found in scored} == {"unknown"}
    assert [found.answer.answer is None for found in scored] == [False, False, True, False]


def test_outputs_may_say_why_they_ended(tmp_path: Any) -> None:
    """Words that open a thought do so only with their end, which a text that was cut has not reached."""
    cell = tmp_path / "grid" / "length_000900" / "position_05000.jsonl"
    cell.parent.mkdir(parents=True)
    cell.write_text(
        "".join(json_line(sample(index=index, thinking=False)) + "\n" for index in range(4)), encoding="utf-8"
    )
    records = [json.loads(line) for line in cell.read_text(encoding="utf-8").splitlines()]
    ends = [
        {"finish_reason": "length"},
        {"done_reason": "length"},
        {"stop_reason": "max_tokens"},
        {"finish_reason": "stop"},
    ]
    outputs = tmp_path / "outputs.jsonl"
    outputs.write_text(
        "\n".join(
            json.dumps({"id": one["id"], "pred": f"Thinking...\nIs it {one['outputs'][0]}?", **end})
            for one, end in zip(records, ends, strict=True)
        ),
        encoding="utf-8",
    )

    scored = score_outputs(tmp_path / "grid", outputs)

    assert [found.answer.answer is None for found in scored] == [True, True, True, False]
    assert [found.scores["all"] for found in scored] == [0.0, 0.0, 0.0, 1.0]
