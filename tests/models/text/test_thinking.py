"""Thought and answer are told apart, whatever the model's markers, and the thought keeps to its budget."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lm_audit.errors import UsageError
from lm_audit.models import LanguageModel
from lm_audit.models.generation.continuation import Generation
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from lm_audit.models.text.thinking import left_open, marker_ids, opened_thought, split_reply
from lm_audit.models.text.thought_markers import MARKERS
from tests.models.pretrained import as_causal, pretrained_tokenizer
from tests.models.small_models import small_llama

HARMONY = (
    "<|channel|>analysis<|message|>User asks for a number.<|end|><|start|>assistant"
    "<|channel|>final<|message|>The number is 7."
)

ON_A_LINE = [one for one in MARKERS if not one.whole and "\n" not in one.written.strip() + one.close.strip()]
"""Families whose markers can be quoted in a sentence."""


def reply(text: str, finish: Any = "eos", opened: Any = None) -> Generation:
    return Generation(text, (1,), finish, opened)


class TestSplitting:
    @pytest.mark.parametrize(
        "text",
        [
            "<think>\n9 and 7.\n</think>\n\nThe number is 7.",
            "\n <THINK>9?</THINK> The number is 7.",
            "<thinking>9</thinking>The number is 7.",
            "<thought>\n9\n</thought>\n\nThe number is 7.",
            "<reasoning>9</reasoning>\nThe number is 7.",
            "<seed:think>9<seed:cot_budget_reflect>1</seed:cot_budget_reflect></seed:think>The number is 7.",
            "[THINK]9[/THINK]The number is 7.",
            "◁think▷9◁/think▷The number is 7.",
            "<|begin_of_thought|>9<|end_of_thought|>\n<|begin_of_solution|>\nThe number is 7.\n<|end_of_solution|>",
            "<|START_THINKING|>9<|END_THINKING|><|START_RESPONSE|>The number is 7.<|END_RESPONSE|>",
            "<|inner_prefix|>9<|inner_suffix|>The number is 7.",
            "<|channel>thought\n9<channel|>The number is 7.",
            HARMONY,
            "analysis9 or 7?assistantfinalThe number is 7.",
            "Here is my thought process:\n9\n\nHere is my response:\nThe number is 7.",
            "<think>9</think>\n<answer>The number is 7.</answer>",
            "It's 9, isn't it? </think> The number is 7.",
            "9\nor so </think> The number is 7.",
            "It is **9**, *no*.</think>The number is 7.",
            "'Tis what I <think>: 9, 'tis</think>The number is 7.",
            "9 it is, no.\n</think>\n\nThe number is 7.",  # the prompt opened the thought
            "the tag </think> closes. 9?</think>The number is 7.",
            "<think>9</think>\n<think>again 9</think>\nThe number is 7.",
            "<think>I may write <think> again</think>The number is 7.",
            "<think>a [/THINK] of another family</think>The number is 7.",
            '<think effort="high">9</think >The number is 7.',
            "<Thought>\n9\n</Thought>\n<Output>\nThe number is 7.\n</Output>",
            "<REASONING>9</REASONING>\n<SOLUTION>The number is 7.</SOLUTION>",
            "<|think|>9<|end|><|begin|>assistant<|content|>The number is 7.",
            "<unused94>thought\n9<unused95>The number is 7.",
            "<rationale>9</rationale>\nThe number is 7.",
            "<chain_of_thought>9</chain_of_thought>\nThe number is 7.",
            "<mm:think>9</mm:think>The number is 7.",
            "<|think_start|>9<|think_end|>The number is 7.",
            "<think>9<think>8</think>9</think>The number is 7.",
            "<think>9</thinking>The number is 7.",
            "<thought>9</think>\n\nThe number is 7.",
            "<think>9<\\/think>The number is 7.",
            "<think>9<|/think|>The number is 7.",
            "Here are my reasoning steps:\n9\n[BEGIN FINAL RESPONSE]\nThe number is 7.\n[END FINAL RESPONSE]",
            "9, no\n[BEGIN FINAL RESPONSE]\nThe number is 7.",  # the template had opened it
            "## Thinking\n\n9\n\n## Final Response\n\nThe number is 7.",
            "[unused16]9[unused17]The number is 7.",
            "<|im_start|>assistant/think\n9<|im_end|>\n<|im_start|>assistant\nThe number is 7.",
            "<|START_THINKING|>9<|END_THINKING|><|START_TEXT|>The number is 7.<|END_TEXT|>",
            "<think>9</think><answer><|begin_of_box|>The number is 7.<|end_of_box|></answer>",
            "<analysis>9</analysis>The number is 7.",
            "<|channel|>analysis<|message|>9<|end|><|start|>assistant"
            "<|channel|>final <|constrain|>text<|message|>The number is 7.",
            "<|start|>assistant" + HARMONY,
            "&lt;think&gt;\n9\n&lt;/think&gt;\n\nThe number is 7.",
            "\\u003cthink\\u003e9\\u003c/think\\u003eThe number is 7.",
            "＜think＞9＜/think＞The number is 7.",
            "< think >9</ think >The number is 7.",
            "**Thinking:** 9\n\n**Answer:** The number is 7.",
            "**Thinking**\n9\n\n**Final Answer**\nThe number is 7.",
            "__Reasoning__: 9\n__Response__: The number is 7.",
            "### Thought process\n9\n\n### Final Answer:\nThe number is 7.",
            "Thought: 9\nFinal Answer: The number is 7.",
            "Reasoning: 9\n\nAnswer: The number is 7.",
            "【思考】9【回答】The number is 7.",
            "思考过程：\n9\n\n最终答案：\nThe number is 7.",
            "**思考：** 9\n**回答：** The number is 7.",
            "<思考>9</思考>The number is 7.",
            "[THINKING]9[/THINKING]The number is 7.",
            "<|start_of_thought|>9<|end_of_thought|>The number is 7.",
            "<|thinking|>9<|end_thinking|>The number is 7.",
            "<|im_start|>think\n9\n<|im_start|>answer\nThe number is 7.",
            "<antThinking>9</antThinking>The number is 7.",
            "<judge>\n9?\n</judge>\n\n<think_on>\n<think>\n9\n</think>\n\n<answer>\nThe number is 7.\n</answer>",
            "<SUMMARY>a</SUMMARY>\n\n<REASONING>9</REASONING>\n\n<CONCLUSION>The number is 7.</CONCLUSION>",
            "<think>9\n<answer>The number is 7.</answer>",
            "```thinking\n9\n```\n\nThe number is 7.",
            '<details type="reasoning">\n<summary>Thought for 3 s</summary>\n9\n</details>\nThe number is 7.',
            "<think>9</think>The number <think>8?</think>is 7.",
            "The number is 7. <think>9</think>",
            "The number is 7.<think>9?</think>",
            "<think>9</think>The number is 7.</s>",
            "<think>9</think>\n<final>The number is 7.</final>",
            "<think>9</think><respuesta>\nThe number is 7.\n</respuesta>",
            "<|START_THINKING|>9<|END_THINKING|><|START_TEXT|>The number is 7.<|END_TEXT|><|END_OF_TURN_TOKEN|>",
            "<think>9</think>\n<answer>\nThe number is 7.\n</answer><|hy_eos|>",
            "<think>9</think>The number is 7.<｜end▁of▁sentence｜>",
            "<judge>\n9?\n</judge>\n\n<think_off>\nThe number is 7.",
            "<judge>\n9?\n</judge>\n\n<think_on>\n<think>\n9\n</think>\n\nThe number is 7.",
        ],
    )
    def test_only_what_follows_the_thought_is_the_answer(self, text: str) -> None:
        found = reply(text)

        assert found.answer == "The number is 7."
        assert found.thought and "number is 7." not in found.thought and found.text == text

    @pytest.mark.parametrize(
        "text",
        [
            "The number is 7.",
            "",
            " \n",
            "Write <think> to think.",
            "analysis of 7",
            "Here is my thought: 7",
            "[7]",
            "Here are my reasoning steps:\nThe number is 7.",
            "## Thinking\n7",
            "<thinker>7",
            "Thinking of 9, I say\nAnswer: 7",
            "**Reasoning** is hard.\n**Answer:** 7",
            "The answer:\nThinking: 9",
            "思考题：9\n答案：7",
            "```python\n7\n```\n7",
            "<details><summary>More</summary>9</details>7",
            "<b>7</b> <answer>7</answer>",
            "the escaped &lt;think&gt;",
        ],
    )
    def test_a_reply_without_thought_is_its_answer_unchanged(self, text: str) -> None:
        found = reply(text)

        assert (found.thought, found.answer) == (None, text)

    @pytest.mark.parametrize(
        "text",
        [
            "<think>The number is 7",
            "<think>The number is 7.</thi",
            "Sure.\n<think>The number is 7",
            "<think>a</think>\n<think>The number is 7",
            "<|channel|>analysis<|message|>The number is 7",
            "<|channel|>analysis",
            "[THINK]The number is 7",
            "◁think▷",
            "&lt;think&gt;The number is 7",
            "<|start|>assistant<|channel|>analysis<|message|>The number is 7",
            "[THINKING]The number is 7",
            "<think>The number is <answer>7",
        ],
    )
    def test_an_answer_that_never_came_is_none(self, text: str) -> None:
        for finish in ("length", "eos", "stop"):
            found = reply(text, finish)

            assert found.answer is None and found.thought is not None

    @pytest.mark.parametrize(
        ("text", "thought", "answer"),
        [
            ("Paris. <think>Or Lyon?</think>", "Or Lyon?", "Paris."),
            ("巴黎。<think>里昂？</think>", "里昂？", "巴黎。"),
            ("Paris, I <thinking>Lyon?</thinking>", "Lyon?", "Paris, I"),
            ("Paris! [THINK]Lyon?[/THINK] It is Paris.", "Lyon?", "Paris!  It is Paris."),
            ("Paris. <think>Lyon? ", "Lyon?", None),
            ("I must not write <think> here.</think>Paris.", "I must not write <think> here.", "Paris."),
            ("Write <think> to think.", None, "Write <think> to think."),
            ("<answer><think>Lyon?</think>Paris.</answer>", "Lyon?", "Paris."),
            ("<think>Lyon?<answer></think>Paris.</answer>", "Lyon?<answer>", "Paris."),
            ("<response> <thinking>Lyon?</thinking> Paris.", "Lyon?", "Paris."),
            ("<answer><think>Lyon?</answer>", "Lyon?</answer>", None),
        ],
    )
    def test_a_thought_within_a_line(self, text: str, thought: str | None, answer: str | None) -> None:
        """Behind a sentence, or as a pair at the end, it is one; elsewhere a text may speak of the marker."""
        found = reply(text)

        assert (found.thought, found.answer) == (thought, answer)

    @pytest.mark.parametrize(
        "text",
        [
            "A template writes `<thought>` first; `</thought>` ends it. I take 7.",
            "<think> is written first, and what is thought ends in </think>. I take 7.",
            "<think> and </think> are two tags. I take 7.",
            "``[THINK]`` begins, ``[/THINK]`` ends.",
            "Models put “<think>” before and “</think>” behind.",
            "用「<think>」开头，用「</think>」结尾，答案是7。",
            "The markers '<reasoning>' and '</reasoning>' are hidden.",
            "Between the <think> tag and the </think> tag is the thought.",
            "- <seed:think> begins a thought\n- </seed:think> ends it",
            "1. <think> begins\n2. </think> ends",
            "For example:\n\n```xml\n<think>\n9\n</think>\n7\n```\n\nIt is 7.",
            "Like so:\n~~~\n◁think▷9◁/think▷7\n~~~\nIt is 7.",
            "As <code><think>9</think></code> shows, it is 7.",
            "> <thinking>\n> 9\n> </thinking>\n\nSo much of the page; it is 7.",
            'The page says "<think>9</think>" and no more.',
            "A thought ends with `</think>`; it is 7.",
            "`<|channel|>analysis<|message|>` and `<|channel|>final<|message|>` are channels.",
            "Use re.sub(r'^<think>.*?</think>\\s*', '', text): 7.",
            "It's 'a <think>b</think> c' that isn't 7.",
            "The tag </think> closes a thought.",
            "**<think>** opens, **</think>** closes: 7.",
            "Write <think>what you think</think> and then 7.",
            "With <think></think> in the prompt it is 7.",
            "Such a model writes <think>...</think> before its 7.",
            "Like this:\n\n[THINK]\n…\n[/THINK]\n\nand then 7.",
        ],
    )
    def test_a_text_that_speaks_of_the_markers_holds_no_thought(self, text: str) -> None:
        for finish in ("eos", "length"):
            assert (reply(text, finish).thought, reply(text, finish).answer) == (None, text)
        found = reply(f"<think>\n9?\n</think>\n\n{text}")
        assert (found.thought, found.answer) == ("9?", text)

    @pytest.mark.parametrize("markers", ON_A_LINE, ids=lambda markers: markers.name)
    def test_an_answer_may_quote_the_markers_of_its_own_thought(self, markers: Any) -> None:
        text = f"`{markers.written.strip()}` opens, `{markers.close.strip()}` closes: 7."

        assert split_reply(f"{markers.written}9{markers.close}{text}").answer == text

    @pytest.mark.parametrize("finish", ["eos", "length"])
    def test_a_quoted_closing_does_not_end_a_thought(self, finish: str) -> None:
        assert reply("<think>What does `</think>` do? It", finish).answer is None
        assert reply("What does '</think>' do? It", finish, opened_thought("<think>")).answer is None
        assert reply('<think>`a` or "b"</think>"7"', finish).answer == '"7"'

    @pytest.mark.parametrize(
        ("text", "answer"),
        [
            ("Thinking...\nIs it 9?\n\nNo.\n...done thinking.\n\n7", "7"),
            ("Thinking...\r\n9\r\n...done thinking.\r\n\r\n**7**\r\n", "**7**"),
            ("Thinking...\n...done thinking.\n\n7", "7"),
            ("Thinking...\n`<think>` is a tag\n...done thinking.\n7", "7"),
            ("Thinking... it is 7.", "Thinking... it is 7."),
            (
                'It prints "Thinking..." and later "...done thinking."',
                'It prints "Thinking..." and later "...done thinking."',
            ),
        ],
    )
    def test_what_ollama_prints_around_a_thought(self, text: str, answer: str) -> None:
        assert reply(text).answer == answer
        assert reply("Thinking...\nIs it 9? No", "length").answer is None

    def test_cut_right_behind_the_thought_is_no_answer(self) -> None:
        assert reply("<think>a</think>\n\n", "length").answer is None
        assert reply("<think>a</think>\n\n", "eos").answer == ""
        assert reply("<thi", "length").answer is None
        assert reply("<thi", "eos").answer == "<thi"

    @pytest.mark.parametrize(
        "text",
        [
            *("analysisWe need 7", "Here is my thought process:\n7", "Here are my reasoning steps:\n7"),
            *(
                "Here's my thought process:\n7",
                "**Thinking:** 7",
                "Thought: 7",
                "### 思考\n7",
                "```thinking\n7",
                "&lt;thi",
            ),
        ],
    )
    def test_cut_before_the_closing_that_makes_words_an_opening_is_no_answer(self, text: str) -> None:
        assert reply(text, "length").answer is None
        assert reply("analysis of 7 by", "length").answer == "analysis of 7 by"

    def test_a_thought_that_the_prompt_opened(self) -> None:
        markers = opened_thought("user: hi\nassistant: <think>\n")

        assert reply("I take 7.", "length", markers).answer is None
        assert reply("9?\n</think>\n7", "eos", markers).answer == "7"
        assert reply("<think>\n9?\n</think>\n7", "eos", markers).answer == "7"

    def test_an_empty_thought(self) -> None:
        assert (reply("<think>\n\n</think>\n\nNo.").thought, reply("<think>\n\n</think>\n\nNo.").answer) == ("", "No.")

    def test_a_thought_that_came_apart(self) -> None:
        found = split_reply("The number is 7.", reasoning="9?")

        assert (found.thought, found.answer) == ("9?", "The number is 7.")

    @pytest.mark.parametrize("markers", MARKERS, ids=lambda markers: markers.name)
    def test_every_family_can_be_closed_from_outside(self, markers: Any) -> None:
        assert split_reply(f"{markers.written}9{markers.close}7.").answer == "7."

    def test_the_end_of_a_prompt_tells_whether_a_thought_is_open(self) -> None:
        assert opened_thought("<think>\n\n</think>\n\n") is None
        assert opened_thought("write <think> first. assistant:") is None
        assert opened_thought("assistant\n[THINK]").name == "[THINK]"  # type: ignore[union-attr]
        assert left_open("<assistant><think>\nOkay,").name == "<think>"  # type: ignore[union-attr]
        assert left_open("<assistant><think>\n\n</think>\n") is None
        apriel = left_open("<|begin_assistant|>\nHere are my reasoning steps:\n")
        assert reply("9?\n[BEGIN FINAL RESPONSE]\n7", "eos", apriel).answer == "7"
        assert reply("The number is 7", "length", apriel).answer is None

    @pytest.mark.parametrize(
        "opening",
        ["**Thinking:**\n", "### Reasoning\n", "思考：", "Here is my thought process:", "&lt;think&gt;", "<think>"],
    )
    def test_a_template_may_open_it_in_any_spelling(self, opening: str) -> None:
        markers = left_open(f"<|user|>hi<|assistant|>\n{opening}")

        assert markers is not None
        assert reply(f"9?{markers.close}7", "eos", markers).answer == "7"
        assert reply("The number is 7", "length", markers).answer is None

    @pytest.mark.parametrize(
        "text", ["<|assistant|>\n", "<|assistant|>analysis", "On thinking: be brief. <|assistant|>"]
    )
    def test_other_ends_of_a_template_open_none(self, text: str) -> None:
        assert left_open(text) is None

    def test_thousands_of_markers_are_read(self) -> None:
        for text in ("</think>", "a <think>", "<answer>", "<a>", "<details>", "&lt;"):
            split_reply(text * 5_000, cut=True)


class Scripted(torch.nn.Module):
    """Says the tokens of a script, one after the other, and from its end on the last one."""

    def __init__(self, script: list[int], start: int) -> None:
        super().__init__()
        self.inner = small_llama(context=512)
        self.config, self.generation_config = self.inner.config, None
        self.script, self.start = script, start

    def get_input_embeddings(self) -> Any:
        return self.inner.get_input_embeddings()

    def forward(self, input_ids: Any, attention_mask: Any, past_key_values: Any, use_cache: bool) -> Any:
        logits = torch.zeros(len(input_ids), 1, 259)
        step = min(int(attention_mask.sum(1).max()) - self.start, len(self.script) - 1)
        logits[..., self.script[step]] = 9.0
        return SimpleNamespace(logits=logits, past_key_values=past_key_values)


def scripted(text: str, prompt: str = "p") -> LanguageModel:
    tokenizer = byte_tokenizer(512)
    script = [*tokenizer(text, add_special_tokens=False).input_ids, 2]
    return LanguageModel(as_causal(Scripted(script, len(tokenizer(prompt).input_ids))), tokenizer, name="scripted")


THOUGHT = "<think>" + "a" * 20 + "</think>"


class TestBudget:
    def test_a_thought_within_its_budget_leaves_the_answer_its_own_room(self) -> None:
        (found,) = scripted(THOUGHT + "The number is 7.").generate(["p"], max_new_tokens=10, thinking_tokens=30)

        assert (found.text, found.finish_reason, found.thought_cut) == (THOUGHT + "The number", "length", False)
        assert (found.thought, found.answer) == ("a" * 20, "The number")

    def test_a_thought_beyond_it_is_closed_and_the_answer_follows(self) -> None:
        closed = "<think>" + "a" * 5 + "\n</think>\n\n"

        (found,) = scripted("<think>" + "a" * 200).generate(["p"], max_new_tokens=4, thinking_tokens=5)

        assert found.text == closed + "aaaa" and found.thought_cut
        assert (found.thought, found.answer, found.finish_reason) == ("aaaaa", "aaaa", "length")
        assert len(found.token_ids) == len(closed) + 4

    def test_a_closing_that_the_thought_only_quotes_leaves_it_open(self) -> None:
        thought = "<think>`</think>` ends it" + "a" * 60
        (found,) = scripted(thought + "</think>7, 8").generate(["p"], max_new_tokens=3, thinking_tokens=120)

        assert (found.thought, found.answer) == (thought.removeprefix("<think>"), "7,")

    def test_no_budget_closes_a_thought_where_it_opens(self) -> None:
        (found,) = scripted("<think>" + "a" * 200).generate(["p"], max_new_tokens=4, thinking_tokens=0)

        assert (found.thought, found.answer) == ("", "aaaa")

    def test_a_thought_that_the_prompt_opened_is_closed_too(self) -> None:
        prompt = "p: <think>\n"

        (found,) = scripted("a" * 200, prompt).generate([prompt], max_new_tokens=4, thinking_tokens=5)
        (none,) = scripted("a" * 200, prompt).generate([prompt], max_new_tokens=4, thinking_tokens=0)

        assert (found.thought, found.answer) == ("aaaaa", "aaaa")
        assert (none.thought, none.answer, none.text) == ("", "aaaa", "\n</think>\n\naaaa")

    def test_without_a_thought_nothing_changes(self) -> None:
        model = scripted("The number is <think> 7.")

        (plain,) = model.generate(["p"], max_new_tokens=30)
        (with_budget,) = model.generate(["p"], max_new_tokens=30, thinking_tokens=3)

        assert plain == with_budget

    def test_shared_room_cut_in_the_thought_is_no_answer(self) -> None:
        (found,) = scripted(THOUGHT + "7").generate(["p"], max_new_tokens=12)

        assert (found.thought, found.answer) == ("aaaaa", None)

    def test_stop_strings_end_the_answer_not_the_thought(self) -> None:
        model = scripted("<think>one\ntwo</think>three\nfour")

        (found,) = model.generate(["p"], max_new_tokens=30, thinking_tokens=30, stop=["\n"])

        assert (found.answer, found.finish_reason) == ("three", "stop")
        assert found.text == "<think>one\ntwo</think>three"

    def test_the_context_ends_a_thought(self) -> None:
        (found,) = scripted("<think>" + "a" * 999).generate(["p"], max_new_tokens=30, thinking_tokens=2000)

        assert len(found.token_ids) == 511 and found.answer is None

    def test_rows_of_a_batch_do_not_disturb_each_other(self) -> None:
        model = LanguageModel(small_llama(initializer_range=0.6, context=256), byte_tokenizer(256), name="small")
        prompts = ["a", "b: <think>", "c", "<think>\n", "<think>\n"]

        together = model.generate(prompts, max_new_tokens=9, thinking_tokens=7, temperature=1.0)

        assert together[:4] == [
            model.generate([one], max_new_tokens=9, thinking_tokens=7, temperature=1.0)[0] for one in prompts[:4]
        ]
        assert together[3].thought_cut and together[4].thought_cut

    def test_a_negative_budget_is_refused(self) -> None:
        with pytest.raises(UsageError, match="thinking_tokens is -1"):
            scripted("a").generate(["p"], max_new_tokens=1, thinking_tokens=-1)

    def test_markers_that_are_special_tokens_stay_in_the_text(self) -> None:
        from tokenizers import AddedToken

        tokenizer = byte_tokenizer(512)
        pretrained_tokenizer(tokenizer).add_tokens(
            [AddedToken(text, special=True) for text in ("[THINK]", "[/THINK]", "<|im_end|>")]
        )
        script = [*tokenizer("[THINK]9[/THINK]7<|im_end|>", add_special_tokens=False).input_ids, 2]
        module = Scripted(script, 2)
        module.forward = _wide(module.forward)  # type: ignore[method-assign]

        (found,) = LanguageModel(as_causal(module), tokenizer, name="special").generate(["p"], max_new_tokens=20)

        assert (found.text, found.thought, found.answer) == ("[THINK]9[/THINK]7", "9", "7")

    @pytest.mark.parametrize(
        ("written", "template"),
        [
            ("<|think|>9<|end|><|begin|>assistant<|content|>7", ""),
            ("9<|im_end|>\n<|im_start|>assistant\n7", "{{ '<|im_start|>assistant/think\n' }}"),
        ],
    )
    def test_a_closing_of_several_special_tokens_stays_in_the_text(self, written: str, template: str) -> None:
        from tokenizers import AddedToken

        tokenizer = byte_tokenizer(512)
        names = ("<|think|>", "<|end|>", "<|begin|>", "<|content|>", "<|im_start|>", "<|im_end|>")
        pretrained_tokenizer(tokenizer).add_tokens([AddedToken(text, special=True) for text in names])
        ids = tokenizer(written, add_special_tokens=False).input_ids
        plain = frozenset(pretrained_tokenizer(tokenizer).all_special_ids) - {*ids}

        assert not marker_ids(tokenizer) & plain
        pretrained_tokenizer(tokenizer).chat_template = template
        kept = marker_ids(tokenizer)
        assert {number for number in ids if number in tokenizer.added_tokens_decoder} <= kept


def _wide(forward: Any) -> Any:
    """The scripted model with room for added tokens."""

    def wider(input_ids: Any, attention_mask: Any, past_key_values: Any, use_cache: bool) -> Any:
        module = forward.__self__
        logits = torch.zeros(len(input_ids), 1, 300)
        logits[..., module.script[min(int(attention_mask.sum(1).max()) - module.start, len(module.script) - 1)]] = 9.0
        return SimpleNamespace(logits=logits, past_key_values=past_key_values)

    return wider
