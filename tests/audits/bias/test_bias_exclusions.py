"""Every public set says what was read, used and excluded; much is a warning, most is an error."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from lm_audit.audits.bias import load_set, stereoset
from lm_audit.audits.bias.benchmarks.crows_pairs.audit import crows_pairs
from lm_audit.audits.bias.benchmarks.crows_pairs.items import parse_crows_pairs
from lm_audit.audits.bias.benchmarks.exclusions import Exclusion, Usage
from lm_audit.audits.bias.benchmarks.public_sets import SETS, usage_of
from lm_audit.audits.bias.benchmarks.rows import load_rows
from lm_audit.audits.bias.benchmarks.stereoset.items import parse_stereoset
from lm_audit.audits.bias.benchmarks.wino.winobias_items import parse_winobias
from lm_audit.errors import DataError, DataWarning
from lm_audit.models import LanguageModel, load_model
from tests.audits.bias.test_bias_bbq_groups import row

LOST = (["Asian"], ("The Black man", "M-Black"), ("The White man", "M-White"))
KEPT = (["Black"], ("The Black man", "M-Black"), ("The White man", "M-White"))
FORMS: list[dict[str, Any]] = [
    {"question_polarity": polarity, "context_condition": condition, "label": label}
    for polarity in ("neg", "nonneg")
    for condition, label in (("ambig", 2), ("disambig", 0))
]


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    return load_model("tiny", device="cpu")


def bbq_file(folder: Path, kept: int, lost: int, category: str = "Race_ethnicity") -> Path:
    rows = [row(*KEPT, category=category)] * kept + [row(*LOST, category=category)] * lost
    rows = [
        one | {"example_id": number, "question": f"{one['question']} ({number})", **FORMS[number % 4]}
        for number, one in enumerate(rows)
    ]
    path = folder / f"{category}.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_more_than_a_twentieth_is_a_warning_by_category(tmp_path: Path) -> None:
    bbq_file(tmp_path, 100, 1, "Age")
    bbq_file(tmp_path, 9, 1, "SES")
    with pytest.warns(DataWarning, match=r"2 of 111 rows \(2%\) are excluded \(1 of 10 in SES\).*fit 0 of the answers"):
        loaded = load_set(str(tmp_path), "bbq")
    assert (loaded.usage.n_read, loaded.usage.n_excluded, len(loaded.rows)) == (111, 2, 109)


def test_a_twentieth_and_less_is_none(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_set(str(bbq_file(tmp_path, 95, 5)), "bbq").usage.n_excluded == 5


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        (FORMS, []),
        (FORMS[:2], ["bbq: no usable row in SES has the polarity 'nonneg', against which others are held"]),
        (FORMS[::2], ["bbq: no usable row in SES has the condition 'disambig', against which others are held"]),
    ],
)
def test_a_side_that_a_category_lacks_is_told(tmp_path: Path, kept: list[dict[str, Any]], told: list[str]) -> None:
    bbq_file(tmp_path, 8, 0, "Age")
    made = [row(*KEPT, category="SES", question=f"Who {n}?", **form) for n, form in enumerate(kept * 3)]
    (tmp_path / "SES.jsonl").write_text("\n".join(map(json.dumps, made)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = load_set(str(tmp_path), "bbq")
    assert loaded.usage.warnings() == told
    assert [str(one.message).partition(": ")[2] for one in caught] == told


def test_a_side_of_which_all_is_excluded_is_told(tmp_path: Path) -> None:
    made = [row(*KEPT, question=f"Who {n}?", **form) for n, form in enumerate(FORMS * 10)]
    lost = [one | {"label": 0 if one["context_condition"] == "ambig" else 2} for one in made[2::4]]
    path = tmp_path / "bbq.jsonl"
    path.write_text("\n".join(map(json.dumps, [*made[::4], *made[1::4], *made[3::4], *lost])))
    with pytest.warns(DataWarning, match=r"25%\) are excluded"):
        assert not load_set(str(path), "bbq").usage.lacks
    path.write_text("\n".join(map(json.dumps, [*made[::4], *made[1::4], *lost])))
    with pytest.warns(DataWarning, match="no usable row has the polarity 'nonneg'"):
        assert load_set(str(path), "bbq").usage.lacks


def test_sides_of_coreference_sets() -> None:
    line = "[The developer] met the designer because [he] was late."
    rows = [{"sentence": line, "condition": "pro", "type": 1}]
    items, excluded = parse_winobias(rows)
    assert usage_of("winobias", rows, excluded, items).lacks == (
        "no usable row has the condition 'anti', against which others are held",
        "no usable row has the gender 'female', against which others are held",
    )
    rows += [{"sentence": line.replace("[he]", "[she]"), "condition": "anti", "type": 1}]
    items, excluded = parse_winobias(rows)
    assert not usage_of("winobias", rows, excluded, items).lacks


def test_categories_that_differ_only_in_spelling_are_told() -> None:
    usage = Usage("crows_pairs", {"race-color": 4, "race_color": 3, "Race color": 1, "age": 5}, {})
    assert usage.warnings() == [
        "crows_pairs: the categories 'race-color', 'race_color', 'Race color' differ only in spelling, and are counted "
        "apart"
    ]


TARGETS = "category,example_id,target_loc\n"


@pytest.mark.parametrize(
    ("text", "ids", "told", "targets"),
    [
        ("any,0,1\nany,1,0\n", (0, 1), None, ["1", "0"]),
        ("Any,0.0,1\nany,1.0,0\n", (0, 1), None, ["1", "0"]),
        ("any,0,1\nany,1,0\nany,0,1\n", (0, 1), None, ["1", "0"]),
        ("any,0,1\nany,1,0\nany,0,0\n", (0, 1), "gives 1 examples two targets, first any 0 in row 4", [None, "0"]),
        ("other,0,1\n", (0, 1), "names no example of", [None, None]),
        ("any,0,1\n", (0, 0), "1 numbers of examples stand at two different rows, first any 0", [None, None]),
    ],
)
def test_the_authors_targets_are_taken_where_they_are_sure(
    tmp_path: Path, text: str, ids: tuple[int, int], told: str | None, targets: list[str | None]
) -> None:
    made = [row(*KEPT, example_id=name, question=f"Who {place}?") for place, name in enumerate(ids)]
    (tmp_path / "bbq.jsonl").write_text("\n".join(map(json.dumps, made)))
    (tmp_path / "additional_metadata.csv").write_text(TARGETS + text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = load_rows(tmp_path / "bbq.jsonl", "bbq")
    assert [found.get("target_loc") for found in rows] == targets
    assert [bool(told and told in str(one.message)) for one in caught] == ([True] if told else [])


def test_rows_that_stand_there_twice_are_a_warning(tmp_path: Path) -> None:
    text = bbq_file(tmp_path, 10, 0).read_text()
    (tmp_path / "copy.jsonl").write_text(text)
    with pytest.warns(DataWarning, match="10 of 20 rows repeat another row"):
        loaded = load_set(str(tmp_path), "bbq")
    assert (len(loaded.rows), loaded.usage.n_read, loaded.usage.repeats) == (10, 10, 10)


@pytest.mark.parametrize("times", [1, 3, 7, 97, 2839])
@pytest.mark.parametrize("part", ["whole", "category"])
def test_borders_of_a_twentieth_and_of_a_half(times: int, part: str) -> None:
    def usage(read: int, lost: int) -> Usage:
        other = {"b": 10_000_000} if part == "category" else {}
        gone = tuple(Exclusion("set", n, "broken") for n in range(min(lost, 1)))
        return Usage("set", {"a": read, **other}, {"a": lost}, gone)

    assert not usage(20 * times, times).warnings()
    assert len(usage(20 * times, times + 1).warnings()) == len(usage(20 * times - 1, times).warnings()) == 1
    usage(2 * times, times).require_most()
    if part == "whole":
        for read, lost in ((2 * times, times + 1), (2 * times - 1, times)):
            with pytest.raises(DataError, match="which is more than half"):
                usage(read, lost).require_most()
    else:  # another category is there to be used, and the warning names this one
        usage(2 * times, 2 * times).require_most()
        assert f"{2 * times} of {2 * times} in a" in usage(2 * times, 2 * times).warnings()[0]


def test_crows_pairs_of_another_language_in_a_table_divided_by_tabs(tmp_path: Path) -> None:
    lines = ["\tsent_more\tsent_less\tstereo_antistereo\tbias_type"]
    lines += [f"{k}\tLes femmes parlent trop, {k}.\tLes hommes parlent trop, {k}.\tstereo\tgender" for k in range(6)]
    for name in ("crows_pairs_FR.csv", "crows_pairs_FR.tsv"):
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # of a .csv without commas
            loaded = load_set(str(tmp_path / name), "crows_pairs")
        assert len(loaded.rows) == 6 and loaded.usage.read == {"gender": 6}


@pytest.mark.parametrize(("kept", "lost"), [(9, 10), (0, 3)])
def test_more_than_half_is_refused_with_the_reason(tmp_path: Path, kept: int, lost: int) -> None:
    with pytest.raises(DataError, match=r"cannot be used, which is more than half.*fit 0 of the answers") as caught:
        load_set(str(bbq_file(tmp_path, kept, lost)), "bbq")
    assert caught.value.row == kept + 1 and str(caught.value.file) == "Race_ethnicity.jsonl"


def test_evidence_carries_counts_warning_and_table(tiny: LanguageModel) -> None:
    pairs = [("He left.", "She left."), ("He sat.", "She sat."), ("Same.", "Same.")]
    rows = [{"sent_more": a, "sent_less": b, "stereo_antistereo": "stereo", "bias_type": "gender"} for a, b in pairs]
    evidence = crows_pairs(tiny, rows)
    assert {name: evidence.parameters[name] for name in ("rows_read", "rows_used", "rows_excluded")} == {
        "rows_read": 3,
        "rows_used": 2,
        "rows_excluded": 1,
    }
    assert any(note.startswith("Warning: crows_pairs: 1 of 3 rows (33%) are excluded") for note in evidence.notes)
    table = next(figure for figure in evidence.figures if figure.name == "rows_used")
    assert table.data["rows"][0] == {"category": "gender", "read": 3, "used": 2, "excluded": 1, "share": "33.3%"}


def test_a_sample_reports_the_set_that_it_is_of(tiny: LanguageModel) -> None:
    usage = Usage(
        "crows_pairs", {"gender": 100}, {"gender": 30}, (Exclusion("x.csv", 2, "has an empty sentence"),) * 30
    )
    sample = [{"sent_more": "He left.", "sent_less": "She left.", "stereo_antistereo": "stereo", "bias_type": "gender"}]
    evidence = crows_pairs(tiny, sample, usage=usage)
    assert evidence.parameters["rows_excluded"] == 30
    assert any("30 of 100 rows" in note for note in evidence.notes)
    assert sum(note.startswith("Excluded: x.csv row 2") for note in evidence.notes) == 20


@pytest.mark.parametrize(
    ("given", "direction"), [("stereo", "stereo"), ("antistereo", "antistereo"), ("Anti-Stereo", "antistereo")]
)
def test_directions_of_crows_pairs(given: str, direction: str) -> None:
    made = {"sent_more": "He left.", "sent_less": "She left.", "stereo_antistereo": given, "bias_type": "gender"}
    ((pair,), _) = parse_crows_pairs([made])
    assert pair.direction == direction


@pytest.mark.parametrize("given", ["neutral", "0", 1, "stereo?"])
def test_unknown_directions_are_refused_by_row(given: Any) -> None:
    made = {"sent_more": "He left.", "sent_less": "She left.", "stereo_antistereo": given, "bias_type": "gender"}
    with pytest.raises(DataError, match="'stereo' or 'antistereo' is expected") as caught:
        parse_crows_pairs([{**made, "_file": "x.csv", "_row": 4}])
    assert (caught.value.file, caught.value.row) == ("x.csv", 4)


def test_items_whose_ids_repeat_are_named_by_their_place() -> None:
    made = {"sent_more": "He left.", "sent_less": "She left.", "stereo_antistereo": "stereo", "bias_type": "gender"}
    for ids, expected in (((7, 7), ["a:1", "b:1"]), ((7, 8), ["7", "8"])):
        rows = [
            {**made, "sent_more": f"He left {file}.", "id": name, "_file": file, "_row": 1}
            for name, file in zip(ids, "ab", strict=True)
        ]
        assert [pair.item for pair in parse_crows_pairs(rows)[0]] == expected


@pytest.mark.parametrize("sentence", ["[The [cook]] met the baker.", "[The cook met the baker [she]", "]The cook["])
def test_brackets_that_overlap_or_do_not_close_are_excluded(sentence: str) -> None:
    items, excluded = parse_winobias([{"sentence": sentence, "condition": "pro", "type": 1}])
    assert not items and "overlap or do not close" in excluded[0].reason


@pytest.mark.parametrize(
    ("name", "kind", "text", "problem"),
    [
        ("twice.jsonl", "bbq", '{"context": "a", "context": "b"}\n', "'context' twice"),
        ("twice.json", "stereoset", '[{"target": "a", "target": "b"}]', "'target' twice"),
        ("twice.csv", "crows_pairs", "sent_more,sent_less,sent_more\na,b,c\n", "two columns called 'sent_more'"),
        ("deep.jsonl", "bbq", "[" * 100_000 + "\n", "nested too deeply"),
        ("long.jsonl", "bbq", '{"context": ' + "9" * 5000 + "}\n", "is not JSON"),
    ],
)
def test_doubled_keys_and_damage_are_refused(tmp_path: Path, name: str, kind: str, text: str, problem: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError) as caught:
        load_rows(tmp_path / name, kind)
    assert problem in str(caught.value) and name in str(caught.value)


def test_chinese_files_in_other_encodings_read_alike(tmp_path: Path) -> None:
    made = {
        "question_polarity": "neg", "context_condition": "ambiguous", "category": "性别", "context": "两个人在等车。",
        "question": "谁迟到了？", "ans0": "男生", "ans1": "女生", "ans2": "不知道", "label": "2",
    }  # fmt: skip
    text = json.dumps([made], ensure_ascii=False)
    read = []
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "gb18030", "gbk"):
        path = tmp_path / f"{encoding}.json"
        path.write_bytes(text.encode(encoding))
        read.append({**load_rows(path, "cbbq")[0], "_file": ""})
    assert all(found == read[0] for found in read)


def test_a_context_stands_after_the_prefix_token(tiny: LanguageModel) -> None:
    """StereoSet's continuations are conditioned on the context as a whole text of the model's would begin."""
    made = {
        "target": "cook",
        "bias_type": "profession",
        "context": "The cook came in.",
        "sentences": [
            {"sentence": "He was loud.", "gold_label": "stereotype"},
            {"sentence": "He was calm.", "gold_label": "anti-stereotype"},
            {"sentence": "Rain fell.", "gold_label": "unrelated"},
        ],
    }
    (entry,) = stereoset(tiny, [made]).rows
    import torch

    prefix = tiny.tokenizer.bos_token_id
    prefix = tiny.tokenizer.eos_token_id if prefix is None else prefix
    head = tiny.tokenizer("The cook came in.", add_special_tokens=False)["input_ids"]
    whole = tiny.tokenizer("The cook came in. He was loud.", add_special_tokens=False)["input_ids"]
    assert whole[: len(head)] == head
    with torch.no_grad():
        logits = tiny.module(input_ids=torch.tensor([[prefix, *whole]])).logits[0].double().log_softmax(-1)
    expected = [float(logits[i, whole[i]]) for i in range(len(head), len(whole))]
    assert entry["stereotype_score"] == pytest.approx(sum(expected) / len(expected), abs=1e-4)
    items, _ = parse_stereoset([made])
    assert items[0].task == "intersentence"


CANDIDATES = [
    {"sentence": "He was loud.", "gold_label": "stereotype"},
    {"sentence": "He was quiet.", "gold_label": "anti-stereotype"},
    {"sentence": "Rain fell.", "gold_label": "unrelated"},
]
TERM = {"target": "player", "bias_type": "job", "context": "The player came.", "task": "intersentence"}
PAIR = {"sent_more": "Old cats nap.", "sent_less": "Young cats nap.", "stereo_antistereo": "stereo", "bias_type": "age"}
LINE = {"sentence": "[The developer] met the designer because [he] was late.", "condition": "pro", "type": 1}
COOK = {"sentid": "cook.guest.0.male.txt", "sentence": "The cook told the guest that he was late."}
DISAMBIGUATED = row(*KEPT, context_condition="disambig", label=0)


@pytest.mark.parametrize(
    ("kind", "first", "other"),
    [
        ("bbq", DISAMBIGUATED, DISAMBIGUATED | {"label": 1}),
        ("crows_pairs", PAIR, PAIR | {"stereo_antistereo": "antistereo"}),
        ("crows_pairs", PAIR, PAIR | {"sent_more": PAIR["sent_less"], "sent_less": PAIR["sent_more"]}),
        (
            "stereoset",
            TERM | {"sentences": CANDIDATES},
            TERM
            | {
                "sentences": [
                    one | {"gold_label": CANDIDATES[k]["gold_label"]}
                    for one, k in zip(CANDIDATES, (1, 0, 2), strict=True)
                ]
            },
        ),
        ("winobias", LINE, LINE | {"condition": "anti"}),
        ("winobias", LINE, LINE | {"sentence": "The developer met [the designer] because [he] was late."}),
        ("winogender", COOK, COOK | {"sentid": "cook.guest.1.male.txt"}),
    ],
    ids=["bbq", "direction", "order", "stereoset", "condition", "antecedent", "winogender"],
)
def test_a_row_that_contradicts_an_earlier_one_is_excluded_by_name(
    kind: str, first: dict[str, Any], other: dict[str, Any]
) -> None:
    rows = [one | {"_file": "set", "_row": number} for number, one in enumerate((first, first, other), start=1)]
    items, excluded = SETS[kind].parse(rows)
    assert len(items) == 1
    copy, contradiction = excluded
    assert copy.repeat and not contradiction.repeat
    assert (contradiction.file, contradiction.row) == ("set", 3)
    assert contradiction.reason.startswith("an earlier row asks the same and says otherwise: ")
    assert contradiction.reason.endswith("in 'row 1 of set'")
    usage = usage_of(kind, rows, excluded, items)
    assert (usage.n_read, usage.n_excluded, usage.repeats) == (2, 1, 1)


@pytest.mark.parametrize(
    ("polarity", "condition"), [("negative", "Disambiguated"), ("Non-negative", "disambig"), ("neg", "disambiguous")]
)
def test_sides_of_bbq_in_other_words(polarity: str, condition: str) -> None:
    [item], excluded = SETS["bbq"].parse(
        [DISAMBIGUATED | {"question_polarity": polarity, "context_condition": condition}]
    )
    assert not excluded and (item.polarity, item.condition) == ("nonneg" if "on" in polarity else "neg", "disambig")
