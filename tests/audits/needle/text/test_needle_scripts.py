"""Scripts without spaces between words: borders of numbers, and haystacks of any text at the length asked for."""

from __future__ import annotations

import time

import pytest

from lm_audit.audits.needle import Haystack, build_sample, score_all, score_boundary
from lm_audit.audits.needle.answers.scores import precision, settled
from lm_audit.audits.needle.haystack.scripts import cuts
from lm_audit.errors import DataError
from tests.audits.needle.text.needle_tokenizers import small_tokenizer

NEEDLE = "The magic number is 1234567."
FULL_WIDTH = str.maketrans("１２３４５６７", "1234567")


@pytest.mark.parametrize(
    "answer",
    [
        "是1234567。",
        "答案是1234567",
        "数字为１２３４５６７。",
        "番号は1234567です。",
        "ﾊﾞﾝｺﾞｳﾊ1234567ﾃﾞｽ",
        "ㄕ1234567ㄏㄠ",
        "1234567입니다.",
        "คือ1234567ครับ",
        "คือ ๑๒๓๔๕๖๗",
        "ແມ່ນ1234567",
        "គឺ1234567។",
        "1234567ဖြစ်သည်။",
        "The number is 1234567.",
        "ቁጥሩ1234567ነው።",
        "ꊿ1234567ꀋ",
        "ㄋˇ1234567ㄏㄠˇ",
        "ㄕˋ 1234567ㄉㄜ˙",
        "是ー1234567々",
        "नंबर1234567है।",
        "ኢ1234567",
        "המספר הוא ה1234567.",
        "و1234567",
        "ꦲ1234567ꦏ",
        "རེད་1234567ལགས།",
        "ჭ 1234567.",
    ],
)
def test_a_number_between_letters_of_such_a_script_stands_by_itself(answer: str) -> None:
    assert score_all(answer, ["1234567"]) == score_boundary(answer, ["1234567"]) == 1.0
    assert precision(answer, ["1234567"]) == 1.0 and settled(answer + "。", ["1234567"])


@pytest.mark.parametrize(
    "answer",
    [
        "是12345678。",
        "１２３４５６７８",
        "a1234567",
        "1234567b",
        "是01234567",
        "1234567_",
        "я1234567",
        "1234567ω",
        "1234567e\u0301",
        "q\u03011234567",
        "x\u02b01234567",
    ],
)
def test_a_longer_number_or_word_does_not_hold_it(answer: str) -> None:
    assert score_boundary(answer, ["1234567"]) == 0.0 and precision(answer, ["1234567"]) != 1.0


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "1234567.5",
            "1234567.01",
            "It is 1234567.50.",
            "1234567,5",
            "1234567,891",
            "1,234,567",
            "1,1234567",
            "1'234'567",
        ),
        *("0.1234567", ".1234567", "is .1234567", "3,1234567", "1234567\u202f890", "12\u00a01234567", "\u22121234567"),
        *(
            "1234567٫٥",
            "٣٬1234567",
            "1234567١٢",
            "是1234567.5。",
            "1234567万",
            "约1234567億元",
            "1234567点5",
            *("1234567点五", "是1234567點八九。", "1234567点零一", "1234567点一四"),
            "3点1234567",
            "1234567½",
            "1234567²",
        ),
        *("１２３４５６７．５", "1234567’890", "1234567,12345678", "12345678,1234567"),
    ],
)
def test_what_a_sign_joins_to_more_digits_is_another_number(answer: str) -> None:
    assert score_boundary(answer, ["1234567"]) == 0.0 and precision(answer, ["1234567"]) in (None, 0.0)


@pytest.mark.parametrize(
    "answer",
    [
        *("1234567.", "It is 1234567. 5 others are not.", "1234567.\n2", "1. 1234567", "1) 1234567", "(1234567),5"),
        *("1234567...", "...1234567", "1234567, 7654321", "1234567,7654321", "7654321,1234567,1111111", "1234567;2"),
        *("1234567，7654321", "其一是1234567，3个", "1234567、7", "1234567 890 times", "1234567's", "'1234567'"),
        *(
            "No.1234567",
            "$1234567",
            "#1234567",
            "1234567元",
            "1234567一",
            "一1234567",
            "1234567.0",
            "key:1234567.It",
            *("答案是1234567点", "1234567点零。", "1234567点一个", "点击1234567点一下"),
        ),
    ],
)
def test_marks_around_a_number_leave_it_what_it_is(answer: str) -> None:
    assert score_boundary(answer, ["1234567"]) == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        *("-1234567", "It is -1234567.", "(-1234567)", "x=-1234567", "**-1234567**", "\u22121234567", "\u20111234567"),
        *("－１２３４５６７", "是-1234567。", "负1234567", "マイナス1234567", "마이너스1234567"),
        *("1. -1234567\n2. -7654321", "-1234567\n7654321"),
    ],
)
def test_a_minus_makes_another_number(answer: str) -> None:
    assert score_boundary(answer, ["1234567"]) == 0.0 and "1234567" in answer.translate(FULL_WIDTH)
    assert precision(answer, ["1234567"]) in (None, 0.0)


@pytest.mark.parametrize(
    "answer",
    [
        *("1234567 万", "1234567百万", "1234567ล้าน", "1234567억", "1234567 ½", "1234567e3", "1234567k", "(202)1234567"),
        *("12:1234567", "$1234567^{2}$", "https://x.org/1234567", "1234567@x.org", "(+1)1234567", "1234567million"),
        *("x.com/?id=1234567", "1234567.pdf", "see 1234567.jpg"),
        *("1234567/2", "1/1234567", "1234567 / 2", "1234567\u20442", "1234567÷2", "1234567∶2", "2 / 1234567"),
        *("1234567:30", "at 1234567:30:00", "from 12:1234567", "是1234567：30", "１２３４５６７／２", "१२३४५६७/२"),
        *(
            "1234567*2",
            "2*1234567",
            "1234567×10",
            "10 × 1234567",
            "1234567 x 2",
            "1234567^2",
            "2^1234567",
            "1234567**2",
        ),
        *("1234567+1", "1+1234567", "√1234567", "1234567%", "1234567 %", "１２３４５６７％", "١٢٣٤٥٦٧٪", "1234567‰"),
        *("百分之1234567", "三分之1234567", "1234567分之一", "1234567만", "1234567만 원", "1234567余万", "1234567仟"),
        *(
            "1234567 e6",
            "(+86)1234567",
            "$1234567 \\times 10^6$",
            "1234567\\%",
            "1234567 1/2",
            "1234567·5",
            "1234567成",
        ),
        *(
            "1234567万",
            "1234567千",
            "1234567万亿",
            "1234567十万",
            "百万1234567",
            "1234567割",
            "1234567crore",
        ),
    ],
)
def test_a_multiple_a_ratio_a_time_or_a_share_is_another_number(answer: str) -> None:
    assert score_boundary(answer, ["1234567"]) == 0.0 and precision(answer, ["1234567"]) in (None, 0.0)


@pytest.mark.parametrize(
    "answer",
    [
        *("555-1234567", "+1-202-1234567", "1-800-1234567", "202\u20131234567", "call 555-1234567", "电话555-1234567"),
        *("1234567-8", "1234567-89", "1234567-01-01", "1234567\u201389", "１２３４５６７－８９"),
        *("1.234.567", "1 234 567", "1'234'567", "12,34,567", "1_234_567", "01234567", "0x1234567", "1234567h"),
        *("1234567kg", "1234567th", "1234567USD", "USD1234567", "1234567₁₆", "1234567²"),
    ],
)
def test_groups_of_digits_and_letters_joined_to_them_are_another_number(answer: str) -> None:
    assert score_boundary(answer, ["1234567"]) == 0.0 and precision(answer, ["1234567"]) in (None, 0.0)


@pytest.mark.parametrize(
    "answer",
    [
        *("1234567 kg", "1234567°", "1234567 °C", "1234567€", "$1234567", "1234567公斤", "第1234567号", "1234567번"),
        *(
            "1234567 bananas",
            "1234567 Kelvin",
            "1234567 Mails",
            "1234567 K's",
            "1234567 kB",
            "1234567成功",
            "1234567倍",
        ),
        *(
            "code-1234567",
            "Q1-1234567",
            "1-1234567\n2-7654321",
            "1234567-7654321",
            "7654321–1234567",
            "1234567-",
            "x 1234567-a",
        ),
        *("either 1234567 or 7654321", "not 1234567", "不是1234567", "1234567 · 5", "1234567 1"),
        *("המספר הוא ה-1234567.", "רשמתי ב-1234567", "رقم-1234567", "क्रमांक-१२३४५६७"),
    ],
)
def test_units_lists_and_what_is_said_of_a_number_leave_it_what_it_is(answer: str) -> None:
    assert score_boundary(answer, ["1234567"]) == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        *("-$1234567", "it is −€ 1234567"),
        *("ลบ1234567", "零下1234567度", "氷点下1234567度", "영하1234567도"),
        *("-１２３４５６７", "-१२३४५६७", "-١٢٣٤٥٦٧"),
    ],
)
def test_a_minus_in_other_signs_and_digits_makes_another_number(answer: str) -> None:
    assert score_boundary(answer, ["1234567"]) == 0.0 and precision(answer, ["1234567"]) in (None, 0.0)


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "1234567/7654321",
            "7654321/1234567",
            "1234567:7654321",
            "1234567 / 7654321",
            "1234567+7654321",
            "id/1234567",
        ),
        *(
            "1:1234567\n2:7654321",
            "Q1:1234567",
            "  2: 1234567",
            "key:1234567",
            "1234567: 30",
            "答案：1234567",
            "1234567：这是",
            "+1234567",
        ),
        *(
            "1234567 miles",
            "1234567 milk",
            "1234567 persons",
            "1234567 x",
            "1234567만 있습니다",
            "1234567만이",
            "1234567조차",
            "1234567 points",
        ),
        *(
            "**1234567**",
            "*1234567* 2",
            "al menos 1234567",
            "au moins 1234567",
            "1234567 - two",
            "1234567. Million",
            "=1234567",
        ),
        *(
            "1234567 (million)",
            "1234567\nmillion",
            "１２３４５６７",
            "१२३४५६७",
            "١٢٣٤٥٦٧",
            "๑๒๓๔๕๖๗",
            "𝟏𝟐𝟑𝟒𝟓𝟔𝟕",
            "১২৩৪৫৬৭",
        ),
    ],
)
def test_lists_units_and_words_leave_a_number_what_it_is(answer: str) -> None:
    assert score_boundary(answer, ["1234567"]) == 1.0 and settled(f"{answer} !", ["1234567"])


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "1234567 million",
            "1234567 million is wrong",
            "1234567 Mio.",
            "1234567 млн",
            "1234567 லட்சம்",
            "1234567 מיליון",
        ),
        *("1234567 M. Dupont", "1234567 K", "1234567 B-trees", "1234567 percent", "1234567 ລ້ານ"),
        *("1234567 squared", "1234567 times", "twice 1234567", "1234567 plus one", "1234567 point five"),
        *("1234567的平方", "1234567加一", "1234567千万别忘", "minus 1234567", "negative 1234567", "минус 1234567"),
        *("(202) 1234567", "(2024) 1234567", "+1 202 1234567", "1234567!", "1234567-fold"),
    ],
)
def test_words_beside_a_number_say_something_of_it(answer: str) -> None:
    assert score_boundary(answer, ["1234567"]) == precision(answer, ["1234567"]) == 1.0
    assert settled(f"{answer} !", ["1234567"])


@pytest.mark.parametrize("behind", [" ", "/", ":", "\u00a0", " x", " x ", "*", "ล้า", "点", "点一"])
def test_a_number_that_may_yet_be_another_is_not_settled(behind: str) -> None:
    assert not settled(f"It is 1234567{behind}", ["1234567"])
    assert settled(f"It is 1234567{behind} is", ["1234567"])


@pytest.mark.parametrize(
    "answer",
    [
        *("- 1234567", "\u2013 1234567", "\u2013 1234567\n\u2013 2", "-1234567\n-7654321", "  -1234567\n  - 7654321\n"),
        *("7654321-1234567", "1234567-7654321", "code-1234567", "1234567 - 8", "--1234567"),
        *(
            "_1234567_",
            "It is __1234567__.",
            "_the number 1234567_",
            "*1234567*",
            "①1234567 ②7654321",
            "⑴1234567",
            "❶1234567",
        ),
        *("\u20661234567\u2069", "№1234567", "#1234567", "1234567-th", "１２３４５６７。", "١٢٣٤٥٦٧", "۱۲۳۴۵۶۷،"),
    ],
)
def test_a_dash_a_count_or_emphasis_leaves_a_number_what_it_is(answer: str) -> None:
    assert score_boundary(answer, ["1234567"]) == 1.0 and settled(f"{answer} !", ["1234567"])


@pytest.mark.parametrize(
    "answer", ["1234567_", "_1234567", "a_1234567_", "_1234567_b", "1_234_567", "1234567th", "1 234 567"]
)
def test_marks_that_are_no_emphasis_and_letters_behind_a_number_join(answer: str) -> None:
    assert score_boundary(answer, ["1234567"]) == 0.0 and not settled("_1234567_", ["1234567"])


def test_words_keep_their_borders() -> None:
    assert score_boundary("答案是red-fox。", ["red-fox"]) == 1.0
    assert score_boundary("The infrared-fox", ["red-fox"]) == 0.0
    assert score_boundary("נכתב הכתב", ["כתב"]) == 0.0 and score_boundary("هذا الكتاب", ["كتاب"]) == 0.0
    assert score_boundary("नमकी", ["नमक"]) == 0.0 and score_boundary("ꊿꀋ red-foxꀋ", ["red-fox"]) == 1.0
    assert score_boundary("สุนัขจิ้งจอก", ["จิ้งจอก"]) == 1.0 and score_boundary("여우는", ["여우"]) == 1.0
    assert score_boundary("狐狸精", ["狐狸"]) == 1.0  # Chinese has no borders to offer


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("Im caf\u00e9.", "cafe\u0301"),
        ("cafe\u0301", "caf\u00e9"),
        ("\u0939\u095b\u093e\u0930", "\u0939\u091c\u093c\u093e\u0930"),
        ("\ud55c\uae00", "\u1112\u1161\u11ab\u1100\u1173\u11af"),
        ("\u200fالرقم هو \u0661\u0662\u0663\u200f", "123"),
        ("👩\u200d🚀 bin ich", "👩\u200d🚀"),
    ],
)
def test_one_word_in_two_forms_of_unicode_is_one(answer: str, reference: str) -> None:
    assert score_all(answer, [reference]) == score_boundary(answer, [reference]) == 1.0
    assert settled(answer + " .", [reference])


TEXTS = {
    "arabic": "هذه جملة قصيرة بالعربيّة، مع تشكيلٍ هنا. " * 80,
    "hindi": "यह हिन्दी में एक छोटा-सा वाक्य है। " * 80,
    "hebrew points": "בְּרֵאשִׁית בָּרָא. " * 120,
    "vietnamese decomposed": "Tie\u0302\u0301ng Vie\u0323\u0302t co\u0301 da\u0301u. " * 120,
    "families": "👨\u200d👩\u200d👧\u200d👦🏽 👩🏿\u200d🚀. " * 120,
    "thai": "ภาษาไทยไม่มีช่องว่างระหว่างคำ" * 300,
    "thai sentences": ("ภาษาไทยไม่มีช่องว่างระหว่างคำ" * 3 + " ") * 60,
    "lao": "ພາສາລາວບໍ່ມີຊ່ອງຫວ່າງ" * 300,
    "khmer": "ភាសាខ្មែរមិនមានចន្លោះរវាងពាក្យទេ។" * 300,
    "burmese": "မြန်မာစာတွင်စကားလုံးများကြားနေရာလွတ်မရှိပါ။" * 300,
    "tibetan": "བོད་སྐད་" * 600,
    "japanese": "日本語の文章には空白がありません。これは二番目の文です。" * 60,
    "one word": "x" * 20_000,
    "base64": "QUJDREVGRw" * 2_000,
    "marks": "a" + "\u0301" * 3_000,
    "emoji": "👩‍👩‍👧‍👦🇩🇪" * 500,
    "a letter": "x",
    "no sentences": "word " * 800,
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("boundary", ["sentence", "word"])
def test_any_text_fills_the_length_asked_for_in_seconds(name: str, boundary: str) -> None:
    begun = time.process_time()
    haystack = Haystack(TEXTS[name], small_tokenizer("byte-level"))

    sample = build_sample(haystack, length=1500, depth=50.0, needle=NEEDLE, seed=1, boundary=boundary, template="base")

    assert 1498 <= sample.actual_length <= 1500
    assert sample.prompt.count(NEEDLE) == 1
    if boundary == "word":
        assert abs(sample.actual_position - 50) < 6
    assert time.process_time() - begun < 60, "it takes well under a second, and took for ever where it searched"


def test_a_needle_is_parted_from_letters_around_it() -> None:
    haystack = Haystack("x" * 20_000, small_tokenizer("byte-level"))
    sample = build_sample(haystack, length=900, depth=50.0, needle=NEEDLE, seed=1, boundary="word", template="base")

    assert f"x {NEEDLE} x" in sample.input
    chinese = Haystack("学而时习之不亦说乎" * 60, small_tokenizer("byte-level"))
    glued = build_sample(
        chinese, length=900, depth=50.0, needle="狐狸的神奇数字之一是：1234567。", seed=1, template="base"
    )
    assert " " not in glued.input[glued.input.find("学") : glued.input.rfind("学")]


def test_units_of_thai_are_syllables_with_their_marks() -> None:
    haystack = Haystack("เก็บน้ำ ABC 123", small_tokenizer("byte-level"))

    assert [haystack.slice(i, i + 1) for i in range(len(haystack))] == ["เก็", "บ", "น้ำ", "ABC", "123"]


def test_a_text_that_cannot_fill_the_length_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from lm_audit.audits.needle.haystack.fitting import Fitter

    monkeypatch.setattr(Fitter, "_fillings", lambda self, window: iter(()))
    haystack = Haystack("Supercalifragilisticexpialidocious. " * 20, small_tokenizer("byte-level"))

    with pytest.raises(DataError, match=r"no stretch of it makes a prompt of \d+ tokens, the nearest has \d+ less"):
        build_sample(haystack, length=700, depth=50.0, needle=NEEDLE, seed=1, template="base")


def test_flags_are_cut_in_time_that_grows_with_their_number() -> None:
    began = time.process_time()
    pieces = list(cuts("\U0001f1e9\U0001f1ea" * 100_000))
    assert time.process_time() - began < 60, "in the square of their number it would be minutes"
    assert pieces[0] == (0, 20) and all(end % 2 == 0 for _, end in pieces)
