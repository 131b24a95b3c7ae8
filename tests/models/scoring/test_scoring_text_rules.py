"""How texts and ids become tokens, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
from tokenizers import Regex, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from lm_audit.errors import DataError, UsageError
from lm_audit.models.language_model import LanguageModel
from lm_audit.models.scoring.boundary import TextSplitter
from lm_audit.models.scoring.requests import RequestEncoder, default_bos
from lm_audit.models.text.byte_tokenizer import FIRST_BYTE, byte_tokenizer
from lm_audit.models.text.tokenizer import Tokenizer
from tests.models.scoring.small_models import small_model, small_module, small_tokenizer


@pytest.fixture
def model() -> LanguageModel:
    return small_model("llama")


def texts_of(model: LanguageModel, ids: Any) -> str:
    return str(model.tokenizer.decode(list(ids)))


def test_trailing_white_space_of_the_prefix_moves_to_the_target(model: LanguageModel) -> None:
    spaced, moved = model.loglikelihood([("The keeper ", "closed"), ("The keeper", " closed")])
    assert texts_of(model, spaced.token_ids) == " closed"
    assert spaced.total == moved.total
    assert not spaced.boundary_merged


def test_a_token_over_the_boundary_belongs_to_the_target(model: LanguageModel) -> None:
    (score,) = model.loglikelihood([("The bud", "get closed")])
    assert score.boundary_merged
    assert texts_of(model, score.token_ids) == " budget closed"


def test_a_line_break_merged_into_a_full_stop_is_scored(model: LanguageModel) -> None:
    """The tokenizer's own offsets are trimmed: by them the token ends before the break."""
    assert ".ĊĊ" in model.tokenizer.get_vocab()
    (score,) = model.loglikelihood([("The door.", "\n\nWas it")])
    assert score.boundary_merged
    assert texts_of(model, score.token_ids).startswith(".\n\n")


def test_a_character_of_several_tokens_is_kept_whole(model: LanguageModel) -> None:
    rare, other = model.loglikelihood([("x", "é"), ("xñ", "y")])
    assert texts_of(model, rare.token_ids) == "é"
    assert texts_of(model, other.token_ids) == "y"


def test_ids_and_text_may_be_mixed(model: LanguageModel) -> None:
    ids = model.tokenizer("The keeper", add_special_tokens=False)["input_ids"]
    target = model.tokenizer(" closed", add_special_tokens=False)["input_ids"]
    forms: list[tuple[Any, Any]] = [
        ("The keeper", " closed"),
        (ids, " closed"),
        ("The keeper", tuple(target)),
        (np.array(ids), torch.tensor(target)),
    ]
    totals = [score.total for score in model.loglikelihood(forms)]
    assert totals == [totals[0]] * 4


def test_bos_is_what_the_tokenizer_adds_and_never_twice() -> None:
    tokenizer = small_tokenizer(bos=True)
    assert default_bos(tokenizer) == (0,)
    assert default_bos(small_tokenizer()) == ()
    encoder = RequestEncoder(tokenizer)
    encoded = encoder.encode([("", "box"), ("<s>", "box"), ([0], "box"), ([], "box")], "default")
    assert [item.ids.tolist()[0] for item in encoded] == [0] * 4
    assert {tuple(item.ids[1:]) for item in encoded} == {tuple(encoded[0].ids[1:])}
    assert 0 not in encoded[0].ids[1:]
    assert [item.start for item in encoded] == [1] * 4
    assert encoder.encode([("", "box")], "none")[0].ids.tolist() == encoded[0].ids[1:].tolist()
    assert encoder.encode([("", "box")], 7)[0].ids[0] == 7


def test_without_anything_before_it_the_first_token_is_left_out(model: LanguageModel) -> None:
    ids = model.tokenizer("The keeper closed", add_special_tokens=False)["input_ids"]
    whole, single, nothing = model.loglikelihood([("", "The keeper closed"), ([], [5]), ("", "")], stats=True)
    assert whole.token_ids.tolist() == ids[1:]
    for empty in (single, nothing):
        assert (len(empty), empty.total, empty.greedy) == (0, 0.0, True)
        assert empty.entropy is not None and len(empty.entropy) == 0


def test_the_context_window_is_checked_before_anything_runs(model: LanguageModel) -> None:
    longest = [3] * 97  # the last token is predicted, never read
    assert len(model.loglikelihood([(longest[:1], longest[1:])])[0]) == 96
    with pytest.raises(DataError, match=r"request 1 needs 97 tokens, and small-llama reads at most 96"):
        model.loglikelihood([([1], [2]), ([3] * 90, [4] * 8)])


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (("only a prefix",), "request 1 is .*a pair"),
        (([1.5], "x"), "request 1 holds"),
        (([[1, 2]], "x"), "request 1 holds"),
        ((None, "x"), "request 1 holds"),
    ],
)
def test_requests_of_the_wrong_form(model: LanguageModel, request_: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        model.loglikelihood([("a", "b"), request_])


def test_unknown_tokens_and_bos(model: LanguageModel) -> None:
    with pytest.raises(DataError, match=r"request 2: token id 320 .* vocabulary of small-llama \(0 to 319\)"):
        model.loglikelihood([([1], [2]), ([1], [2]), ([1, 320], [2])])
    with pytest.raises(UsageError, match="bos is 'yes'"):
        model.loglikelihood([("a", "b")], bos="yes")  # type: ignore[arg-type]


def test_no_requests(model: LanguageModel) -> None:
    assert model.loglikelihood([]) == []


class WithoutOffsets:
    """The small tokenizer as a slow one, which knows no offsets."""

    def __init__(self) -> None:
        self._fast = small_tokenizer()

    def __call__(self, text: str, **options: Any) -> Any:
        return {"input_ids": self._fast(text, **options)["input_ids"]}

    def decode(self, ids: list[int], **options: Any) -> str:
        return str(self._fast.decode(ids, **options))


@pytest.mark.parametrize(
    ("prefix", "target"),
    [("The keeper", " closed"), ("The bud", "get"), ("The door.", "\n\nWas"), ("", "x"), ("xé", " y"), ("x", "")],
)
def test_a_tokenizer_without_offsets_is_split_alike(prefix: str, target: str) -> None:
    slow, fast = TextSplitter(cast(Tokenizer, WithoutOffsets())), TextSplitter(small_tokenizer())
    (a,), (b,) = (s.split([prefix + target], [len(prefix)]) for s in (slow, fast))
    assert (a[0].tolist(), *a[1:]) == (b[0].tolist(), *b[1:])


class OfWords:
    """A slow tokenizer whose tokens do not spell the text, as CTRL's and BERT's: "@@" behind pieces of an open word,
    letters of no token as one unknown.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def __call__(self, text: str, **options: object) -> dict[str, list[int]]:
        found: list[str] = []
        for word in text.split():
            parts = re.findall("[a-z]{1,3}|[^a-z]+", word)
            named = [part if part.isascii() else "<unk>" for part in parts]
            found += [*(f"{part}@@" for part in named[:-1]), named[-1]]
        self.pieces += [piece for piece in found if piece not in self.pieces]
        return {"input_ids": [self.pieces.index(piece) for piece in found]}

    def decode(self, ids: list[int], **options: object) -> str:
        return " ".join(self.pieces[number] for number in ids).replace("@@ ", "")


@pytest.mark.parametrize(
    ("prefix", "target", "wanted", "merged"),
    [
        ("the answer:", " b", ["b"], False),
        ("the answer:", "b", [":@@", "b"], True),  # the colon was the word's last piece by itself
        ("éa answers:", " yes", ["yes"], False),
        ("éa answ", "ers", ["wer@@", "s"], True),
        ("a é", "è", ["<unk>"], True),  # one token of both
        ("a é", " è", ["<unk>"], False),
        ("a é", "", [], False),
    ],
)
def test_tokens_that_do_not_spell_the_text(prefix: str, target: str, wanted: list[str], merged: bool) -> None:
    """They are told apart by the tokens of the prefix by itself: no letter of the target goes unscored."""
    tokenizer = OfWords()

    ((ids, first, spans),) = TextSplitter(cast(Tokenizer, tokenizer)).split([prefix + target], [len(prefix)])

    assert [tokenizer.pieces[number] for number in ids[first:]] == wanted and spans is merged


def test_a_model_in_training_mode_is_scored_without_dropout() -> None:
    module = small_module("gpt2", attn_pdrop=0.5, resid_pdrop=0.5, embd_pdrop=0.5)
    model = LanguageModel(module, small_tokenizer(), name="dropout")
    calm = model.loglikelihood([("The keeper", " closed the door")])[0].logprobs
    module.train()
    np.testing.assert_array_equal(model.loglikelihood([("The keeper", " closed the door")])[0].logprobs, calm)
    assert module.training


def with_rules(**parts: Any) -> RequestEncoder:
    """The byte tokenizer with a normaliser or a pre-tokenizer before its own."""
    made: Any = byte_tokenizer(64)
    if "normalizer" in parts:
        made.backend_tokenizer.normalizer = parts["normalizer"]
    if "pre_tokenizer" in parts:
        made.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [parts["pre_tokenizer"], made.backend_tokenizer.pre_tokenizer]
        )
    return RequestEncoder(made)


@pytest.mark.parametrize(
    ("prefix", "target", "scored"),
    [("cafe", "\u0301 is", "é is"), ("the cafe", "\u0301", "é"), ("n", "\u0303o", "ño"), ("か", "\u3099", "が")],
)
@pytest.mark.parametrize("rule", [normalizers.NFC(), normalizers.NFKC()], ids=["NFC", "NFKC"])
def test_a_letter_that_prefix_and_target_make_together_is_scored(
    rule: Any, prefix: str, target: str, scored: str
) -> None:
    """It was left out in silence: nothing of an accent alone was scored, which made it certain."""
    (found,) = with_rules(normalizer=rule).encode([(prefix, target)], "none")
    assert found.merged
    begun = scored.encode()
    part = bytes(int(number) - FIRST_BYTE for number in found.ids[found.start :])
    assert part and begun.endswith(part) and len(part) > len(begun) - 3  # bytes in common go before


@pytest.mark.parametrize(
    ("parts", "prefix", "target"),
    [
        ({"normalizer": normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])}, "cafe", "\u0301"),
        ({"normalizer": normalizers.Replace(Regex("[0-9]+"), "")}, "ab", "12"),
        ({"normalizer": normalizers.NFKC(), "pre_tokenizer": pre_tokenizers.Punctuation("removed")}, "ab", ".."),
        ({"pre_tokenizer": pre_tokenizers.Split(Regex("[0-9]"), "removed")}, "", "7"),
    ],
    ids=["accent", "digits", "punctuation", "digit alone"],
)
def test_a_target_of_which_nothing_is_read_is_refused(parts: Any, prefix: str, target: str) -> None:
    """It had the log-probability 0: the likeliest of all options."""
    encoder = with_rules(**parts)
    encoder.encode([("a", "b"), ("a", "")], "none")
    says = rf"request 1: the tokenizer reads nothing of the target .*{re.escape(target)}"
    with pytest.raises(DataError, match=says):
        encoder.encode([("a", "b"), (prefix, target)], "none")


def of_two_words() -> Tokenizer:
    from transformers import PreTrainedTokenizerFast

    backend = Backend(models.WordLevel({"<unk>": 0, "a": 1, "cat": 2}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.add_special_tokens(["<unk>"])
    wrapper: Any = PreTrainedTokenizerFast
    made: Tokenizer = wrapper(tokenizer_object=backend, unk_token="<unk>")
    return made


@pytest.mark.parametrize(
    ("target", "refused"), [("好", True), (" 坏 好", True), (" cat 好", False), ("<unk>", False), (" cat", False)]
)
def test_a_target_of_unknown_letters_alone_is_refused(target: str, refused: bool) -> None:
    """Any two words of another script scored the same: no preference, without a word."""
    encoder = RequestEncoder(of_two_words())
    if not refused:
        encoder.encode([("a", target)], "none")
        return
    with pytest.raises(DataError, match=rf"request 1: the tokenizer knows no letter of the target .*{target.strip()}"):
        encoder.encode([("a", " cat"), ("a", target)], "none")


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.loglikelihood([("a", " cat"), ("a", " cat 好")]),
        lambda model: model.loglikelihood([("a 好", " cat")]),
        lambda model: model.next_token_log_mass([("a 好", "")], [1]),
        lambda model: model.generate(["a 好"], max_new_tokens=1),
        lambda model: model.complete([[1, 0]], [[2]], max_new_tokens=1),
    ],
    ids=("target", "prefix", "mass", "prompt", "ids"),
)
def test_some_unknown_letters_are_told_once(ask: Callable[[LanguageModel], object]) -> None:
    """Two groups in another script were one and the same to the model, and its equal numbers a finding."""
    model = LanguageModel(small_module("llama"), of_two_words(), name="two words")
    model.loglikelihood([("a", " cat"), ([1], [2])])
    model.next_token_log_mass([("a", " cat")], [0])
    assert model.told == ()

    with pytest.warns(UserWarning, match="does not know some letters of what it is asked, .* as in '.*<unk>.*'"):
        ask(model)
    ask(model)

    assert len(model.told) == 1


def test_an_unknown_token_that_is_also_bos_tells_nothing() -> None:
    """GPT-2 names one token for all; it knows every letter."""
    tokenizer: Any = of_two_words()
    tokenizer.bos_token = "<unk>"
    model = LanguageModel(small_module("llama"), tokenizer, name="two words")

    model.loglikelihood([([0, 1], [2])])

    assert model.told == ()
