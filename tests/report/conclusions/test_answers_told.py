"""The run's answer in its very words: headline, reasons, tone; and what a finding shows on the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lm_audit.evidence import Control
from lm_audit.findings import Finding
from lm_audit.report.conclusions.answer import MAY_IT_SHIP, WHAT_WAS_FOUND, gate_line, overall
from lm_audit.report.conclusions.by_strength import by_strength, distance, sureness
from lm_audit.report.page.interval_bar import bar, common_scale
from lm_audit.report.wording.names import anchor
from lm_audit.runstore.records import Attempt, CaseRecord, DamagedLine, Outcome, Run, Verdict
from lm_audit.stats.estimate import Estimate

VALUE = {"x.m": Estimate(0.5, 0.4, 0.6, 40, unit="share")}


def finding(verdict: Any, *, headline: bool = True, **more: Any) -> Finding:
    """A claim with this verdict."""
    return Finding("k", verdict, "It does", "It does not", "Does it?", headline=headline, **more)


def case(
    number: int,
    *words: Any,
    model: str | None = "m",
    outcome: Outcome = "passed",
    findings: tuple[Finding, ...] = (),
    **more: Any,
) -> CaseRecord:
    """A case whose gates came out so, in order."""
    verdicts = tuple(Verdict("x.m", word, "<= 0.02", f"0.5 is {word}") for word in words)
    attempt = Attempt(1, outcome, "main", 1.0, metrics=VALUE if outcome == "passed" else {}, findings=findings)
    return CaseRecord(
        f"t.py::test_a[{model}@cpu-{number}]", "x", model, "cpu", None, attempt, verdicts=verdicts, **more
    )


def run(*cases: CaseRecord, planned: int = 0, **more: Any) -> Run:
    """A run of these cases, and of so many that never ended."""
    ids = (*(one.case_id for one in cases), *(f"t.py::never[{at}]" for at in range(planned)))
    return Run("r", Path("r"), 1, more.pop("metadata", {}), cases, ids, finished=True, **more)


def told(made: Run) -> tuple[str, str, str, str, list[str]]:
    answer = overall(made)[0]
    return answer.state.name, answer.headline, answer.tone, answer.question, list(answer.reasons)


OPEN = finding("cannot tell")
FOUND = finding("found")
NONE = finding("not found")
ASIDE = {word: finding(word, headline=False) for word in ("found", "cannot tell", "not found")}
UNJUDGED = "No gate was set, so nothing is judged."
MORE = "How many items would tell stands beside each; --size and --limit set how many are measured."
ALONE = "No gate was set, and the findings are exploratory alone."
OF_TOY = "No gate was set, and the findings are of the built-in toy, which says nothing about a model of yours."
TOY_GATES = "Gates on the built-in toy, which decide nothing about a model of yours:"
TOY: dict[str, Any] = {"model": "tiny", "toy": True}
BROKEN = replace(case(9), last=Attempt(1, "failed", "main", 1.0, control=Control("positive", False, "a", "b")))
DAMAGE = DamagedLine("events.jsonl", 1, "no JSON")


@pytest.mark.parametrize(
    ("made", "answer"),
    [
        (run(case(1, "met")), ("met", "Yes, as far as these gates go.", "met", MAY_IT_SHIP, ["1 gate met on m."])),
        (
            run(case(1, "met"), case(2, "met", model="n"), case(3, "met", model=None)),
            (
                "met",
                "Yes, as far as these gates go.",
                "met",
                MAY_IT_SHIP,
                ["3 gates met on m, n and models named by the cases."],
            ),
        ),
        (
            run(case(1, "met", "missed"), case(2, "undecided", "missed")),
            (
                "missed",
                "No: 2 of 4 gates missed.",
                "missed",
                MAY_IT_SHIP,
                [
                    "Missed: m (a \u203a 1, m): 0.5 is missed (<= 0.02).",
                    "Missed: m (a \u203a 2, m): 0.5 is missed (<= 0.02).",
                    "Undecided: m (a \u203a 2, m): 0.5 is undecided (<= 0.02).",
                ],
            ),
        ),
        (
            run(*(case(k, "missed") for k in range(4))),
            (
                "missed",
                "No: 4 of 4 gates missed.",
                "missed",
                MAY_IT_SHIP,
                [
                    "Missed: m (a \u203a 0, m): 0.5 is missed (<= 0.02).",
                    "Missed: m (a \u203a 1, m): 0.5 is missed (<= 0.02).",
                    "Missed: m (a \u203a 2, m): 0.5 is missed (<= 0.02).",
                    "Missed: m (a \u203a 3, m): 0.5 is missed (<= 0.02).",
                ],
            ),
        ),
        (
            run(*(case(k, "missed") for k in range(6)), *(case(k, "undecided") for k in range(10, 15))),
            (
                "missed",
                "No: 6 of 11 gates missed.",
                "missed",
                MAY_IT_SHIP,
                [
                    "Missed: m (a \u203a 0, m): 0.5 is missed (<= 0.02).",
                    "Missed: m (a \u203a 1, m): 0.5 is missed (<= 0.02).",
                    "Missed: m (a \u203a 2, m): 0.5 is missed (<= 0.02).",
                    "Missed: m (a \u203a 3, m): 0.5 is missed (<= 0.02).",
                    "2 more gates missed.",
                    "Undecided: m (a \u203a 10, m): 0.5 is undecided (<= 0.02).",
                    "Undecided: m (a \u203a 11, m): 0.5 is undecided (<= 0.02).",
                    "Undecided: m (a \u203a 12, m): 0.5 is undecided (<= 0.02).",
                    "Undecided: m (a \u203a 13, m): 0.5 is undecided (<= 0.02).",
                    "1 more gate undecided.",
                ],
            ),
        ),
        (
            run(case(1, "undecided", "met"), case(2, findings=(FOUND, OPEN, NONE, ASIDE["cannot tell"]))),
            (
                "undecided",
                "Undecided: the evidence is too thin.",
                "undecided",
                MAY_IT_SHIP,
                [
                    "Undecided: m (a \u203a 1, m): 0.5 is undecided (<= 0.02).",
                    "Of 3 main questions: 1 found, 1 cannot be told at this size, 1 excluded.",
                    "1 exploratory question beside them cannot be told.",
                    MORE,
                ],
            ),
        ),
        (
            run(case(1, "missed", "met", "met", "undecided", **TOY)),
            (
                "reported",
                "No model was judged: only the built-in toy was measured.",
                "undecided",
                MAY_IT_SHIP,
                [f"{TOY_GATES} 1 missed, 1 undecided, 2 met."],
            ),
        ),
        (
            run(case(1, "met"), case(2, "missed", **TOY), case(3, **TOY)),
            (
                "met",
                "Yes, as far as these gates go.",
                "met",
                MAY_IT_SHIP,
                [
                    "1 gate met on m.",
                    f"{TOY_GATES} 1 missed.",
                ],
            ),
        ),
        (
            run(case(1, "met"), case(2, outcome="error"), case(3, outcome="error")),
            (
                "failed",
                "Not on this evidence: some cases failed.",
                "failed",
                MAY_IT_SHIP,
                ["2 cases broke."],
            ),
        ),
        (
            run(case(1, "met"), case(2, outcome="failed")),
            ("failed", "Not on this evidence: some cases failed.", "failed", MAY_IT_SHIP, ["1 case failed."]),
        ),
        (
            run(case(1, "met"), case(2, outcome="crashed"), planned=2),
            (
                "unfinished",
                "Not on this evidence: the run is incomplete.",
                "unfinished",
                MAY_IT_SHIP,
                ["1 case crashed.", "2 planned cases never ended."],
            ),
        ),
        (
            run(case(1, "met"), case(2, outcome="unfinished")),
            (
                "unfinished",
                "Not on this evidence: the run is incomplete.",
                "unfinished",
                MAY_IT_SHIP,
                ["1 case did not finish.", "1 planned case never ended."],
            ),
        ),
        (
            run(case(1, "met"), planned=1),
            (
                "unfinished",
                "Not on this evidence: the run is incomplete.",
                "unfinished",
                MAY_IT_SHIP,
                ["1 planned case never ended."],
            ),
        ),
        (
            run(case(1, findings=(FOUND, FOUND)), case(2, findings=(FOUND,), model="n")),
            (
                "reported",
                "Found: 2 in m, 1 in n.",
                "missed",
                WHAT_WAS_FOUND,
                ["Of 3 main questions: 3 found.", UNJUDGED],
            ),
        ),
        (
            run(case(1, findings=(FOUND,))),
            ("reported", "1 effect found in m.", "missed", WHAT_WAS_FOUND, ["Of 1 main question: 1 found.", UNJUDGED]),
        ),
        (
            run(case(1, findings=(NONE,))),
            (
                "reported",
                "Nothing found, and all that was looked for is excluded.",
                "met",
                WHAT_WAS_FOUND,
                ["Of 1 main question: 1 excluded.", UNJUDGED],
            ),
        ),
        (
            run(case(1, findings=(NONE, OPEN))),
            (
                "reported",
                "Nothing found; not everything could be told.",
                "undecided",
                WHAT_WAS_FOUND,
                ["Of 2 main questions: 1 cannot be told at this size, 1 excluded.", MORE, UNJUDGED],
            ),
        ),
        (
            run(case(1, findings=(NONE, ASIDE["found"], ASIDE["found"]))),
            (
                "reported",
                "Nothing found but 2 exploratory effects; all main questions are answered with no.",
                "undecided",
                WHAT_WAS_FOUND,
                ["Of 1 main question: 1 excluded.", UNJUDGED],
            ),
        ),
        (
            run(case(1, findings=(NONE, ASIDE["cannot tell"], ASIDE["cannot tell"]))),
            (
                "reported",
                "Nothing found; all main questions are answered with no.",
                "met",
                WHAT_WAS_FOUND,
                ["Of 1 main question: 1 excluded.", "2 exploratory questions beside them cannot be told.", UNJUDGED],
            ),
        ),
        (
            run(case(1, findings=(NONE,)), case(2, outcome="failed")),
            (
                "failed",
                "Nothing found; not everything was measured.",
                "undecided",
                WHAT_WAS_FOUND,
                ["Of 1 main question: 1 excluded.", "1 case failed.", UNJUDGED],
            ),
        ),
        (
            run(case(1, findings=(NONE,)), planned=1),
            (
                "unfinished",
                "Nothing found; not everything was measured.",
                "undecided",
                WHAT_WAS_FOUND,
                ["Of 1 main question: 1 excluded.", "1 planned case never ended.", UNJUDGED],
            ),
        ),
        (
            run(
                *(case(k, findings=(NONE,), model=name) for k, name in enumerate("mno")),
                case(9, findings=(FOUND,), **TOY),
            ),
            (
                "reported",
                "Nothing found in m, n and o, and all that was looked for is excluded.",
                "met",
                WHAT_WAS_FOUND,
                ["Of 3 main questions: 3 excluded.", UNJUDGED],
            ),
        ),
        (
            run(case(1, findings=(NONE,)), case(3, findings=(NONE,), **TOY)),
            (
                "reported",
                "Nothing found, and all that was looked for is excluded.",
                "met",
                WHAT_WAS_FOUND,
                ["Of 1 main question: 1 excluded.", UNJUDGED],
            ),
        ),
        (
            run(case(1, findings=(OPEN,)), case(3, findings=(FOUND,), **TOY)),
            (
                "reported",
                "Nothing could be told of m.",
                "undecided",
                WHAT_WAS_FOUND,
                ["Of 1 main question: 1 cannot be told at this size.", MORE, UNJUDGED],
            ),
        ),
        (
            run(case(1)),
            (
                "reported",
                "Measured, not judged.",
                "reported",
                WHAT_WAS_FOUND,
                ["No gate was set and no audit stated a finding: the numbers below are all there is."],
            ),
        ),
        (
            run(case(1, findings=(ASIDE["not found"],))),
            ("reported", "Measured, not judged.", "reported", WHAT_WAS_FOUND, [ALONE]),
        ),
        (
            run(case(1, findings=(ASIDE["cannot tell"],))),
            ("reported", "Measured, not judged.", "reported", WHAT_WAS_FOUND, [ALONE]),
        ),
        (
            run(case(1, findings=(ASIDE["found"],))),
            ("reported", "Measured, not judged.", "reported", WHAT_WAS_FOUND, [ALONE]),
        ),
        (
            run(case(1, findings=(FOUND,), **TOY)),
            ("reported", "Measured, not judged.", "reported", WHAT_WAS_FOUND, [OF_TOY]),
        ),
        (run(), ("absent", "Nothing was measured.", "reported", WHAT_WAS_FOUND, [])),
        (
            run(case(1), damaged=(DAMAGE,)),
            (
                "reported",
                "Measured, not judged.",
                "reported",
                WHAT_WAS_FOUND,
                [
                    "1 damaged record or file.",
                    "No gate was set and no audit stated a finding: the numbers below are all there is.",
                ],
            ),
        ),
        (
            run(case(1, outcome="skipped"), damaged=(DAMAGE, DAMAGE)),
            ("absent", "Nothing was measured.", "reported", WHAT_WAS_FOUND, ["2 damaged records or files."]),
        ),
        (
            run(case(1, "met"), BROKEN),
            (
                "void",
                "Not on this evidence: an audit is void.",
                "reported",
                MAY_IT_SHIP,
                ["Void, so that its numbers do not count: x on m.", "1 case failed."],
            ),
        ),
        (
            run(case(1, "met"), metadata={"missing_shards": [2, 3]}),
            (
                "unfinished",
                "Not on this evidence: the run is incomplete.",
                "unfinished",
                MAY_IT_SHIP,
                ["Not the whole run: merged without shards 2, 3."],
            ),
        ),
        (
            run(case(1, findings=(NONE,)), metadata={"options": {"shard": "1/2"}}),
            (
                "unfinished",
                "Nothing found; not everything was measured.",
                "undecided",
                WHAT_WAS_FOUND,
                [
                    "Of 1 main question: 1 excluded.",
                    "Not the whole run: this is shard 1/2 alone; lm-audit merge makes one run of all.",
                    UNJUDGED,
                ],
            ),
        ),
        (
            run(case(1, "missed"), case(2, "undecided"), BROKEN),
            (
                "void",
                "Not on this evidence: an audit is void.",
                "reported",
                MAY_IT_SHIP,
                ["Void, so that its numbers do not count: x on m.", "1 case failed."],
            ),
        ),
        (
            run(case(1, "missed"), case(2, "missed", model="n"), BROKEN),
            (
                "missed",
                "No: 1 of 1 gate missed.",
                "missed",
                MAY_IT_SHIP,
                [
                    "Missed: m (a \u203a 2, n): 0.5 is missed (<= 0.02).",
                    "Void, so that its numbers do not count: x on m.",
                    "1 case failed.",
                ],
            ),
        ),
        (
            run(case(1, findings=(NONE,)), BROKEN),
            (
                "void",
                "Not on this evidence: an audit is void.",
                "reported",
                WHAT_WAS_FOUND,
                ["Void, so that its numbers do not count: x on m.", "1 case failed."],
            ),
        ),
        (
            run(case(1, findings=(NONE,)), case(2, findings=(FOUND,), model="n"), BROKEN),
            (
                "void",
                "1 effect found in n.",
                "missed",
                WHAT_WAS_FOUND,
                [
                    "Of 1 main question: 1 found.",
                    "Void, so that its numbers do not count: x on m.",
                    "1 case failed.",
                    UNJUDGED,
                ],
            ),
        ),
    ],
)
def test_the_answer(made: Run, answer: Any) -> None:
    assert told(made) == answer


def test_a_gate_in_one_line_with_the_toy_named() -> None:
    (verdict,) = case(1, "missed").verdicts
    assert gate_line(case(1), verdict) == "m (a \u203a 1, m): 0.5 is missed (<= 0.02)"
    assert (
        gate_line(case(1, **TOY), verdict)
        == "BUILT-IN TOY, decides nothing: m (a \u203a 1, tiny): 0.5 is missed (<= 0.02)"
    )


@pytest.mark.parametrize(
    ("effect", "null", "halves"),
    [
        (Estimate(0.5, 0.3, 0.9), 0.0, 2.5),
        (Estimate(0.5, 0.3, 0.9), 0.9, 1.0),
        (Estimate(0.5, 0.3, 0.9), 0.5, 0.0),
        (Estimate(0.5, None, 0.9), 0.0, 0.0),
        (Estimate(0.5, 0.5, 0.9), 0.0, 0.0),
        (Estimate(0.5, 0.3, 0.9), None, 0.0),
        (None, 0.0, 0.0),
        (Estimate.not_estimable("-"), 0.0, 0.0),
    ],
)
def test_how_far_an_effect_lies_from_none(effect: Estimate | None, null: float | None, halves: float) -> None:
    assert distance(finding("found", effect=effect, null=null)) == pytest.approx(halves)


@pytest.mark.parametrize(
    ("fields", "family", "words"),
    [
        ({"p": 0.002}, 14, "p 0.0020"),
        ({"p": 0.002, "adjusted": 0.04}, 1, "p 0.040"),
        ({"p": 0.002, "adjusted": 0.04}, 2, "p 0.040, corrected for 2 findings"),
        ({"p": 0.002, "adjusted": 0.04, "effect": VALUE["x.m"]}, 14, "p 0.040, corrected for 14 findings \u00b7 n 40"),
        ({"effect": VALUE["x.m"]}, 14, "n 40"),
        ({"effect": Estimate(0.5)}, 14, ""),
        ({}, 14, ""),
    ],
)
def test_how_sure_a_finding_is(fields: dict[str, Any], family: int, words: str) -> None:
    assert sureness(finding("found", **fields), family) == words


def test_findings_stand_in_the_order_of_their_strength() -> None:
    def one(name: str, verdict: Any, value: float = 0.5, *, headline: bool = True, **more: Any) -> Finding:
        effect = Estimate(value, value - 0.1, value + 0.1, n=40)
        return replace(finding(verdict, headline=headline, effect=effect, null=0.0, **more), key=name)

    order = [
        one("surest", "found", p=0.5, adjusted=0.001),
        one("further", "found", 0.9, p=0.01),
        one("nearer", "found", 0.4, p=0.01 + 1e-8),
        one("sure", "found", p=0.02),
        one("untested", "found"),
        one("aside", "found", headline=False, p=0.0001),
        one("open", "cannot tell", p=0.3),
        one("none", "not found", p=0.0),
    ]
    shuffled = tuple(order[at] for at in (7, 3, 5, 2, 0, 6, 4, 1))
    assert [found.key for _, found in by_strength(run(case(1, findings=shuffled)))] == [one.key for one in order]


def test_a_finding_as_the_page_shows_it() -> None:
    """Of a void audit only how many are left out; the family is what was tested of one audit and weight."""
    effect = Estimate(0.5, 0.4, 0.6, n=40, unit="share", chance=0.1)
    said: dict[str, Any] = {"page": "bias.md", "look": "look here", "size": "50 of 100", "null": 0.25}
    full = finding("found", effect=effect, p=0.01, adjusted=0.02, metric="x.m", **said)
    bare = replace(finding("cannot tell", headline=False, p=0.5, reason="too few"), key="bare")
    other = replace(case(2, findings=(replace(full, p=0.02),)), audit="y")
    made = run(
        case(1, findings=(full, replace(full, adjusted=0.03), bare)), other, case(3, findings=(NONE,), model="n")
    )
    findings = overall(made)[1]
    assert [(one.model, len(one.found), len(one.unknown), len(one.absent), one.void) for one in findings] == [
        ("m", 3, 1, 0, 0),
        ("n", 0, 0, 1, 0),
    ]
    first, second, _ = findings[0].found
    drawn = replace(effect, chance=0.25)
    told = {name: getattr(first, name) for name in first.__dataclass_fields__}
    expected = {
        "key": "k", "statement": "It does", "verdict": "found", "tone": "missed", "audit": "x", "case": "a \u203a 1",
        "anchor": anchor("case", made.cases[0].case_id), "value": "0.50", "interval": "[0.40, 0.60]", "unit": "share",
        "bar": bar(drawn, common_scale([drawn])), "null": "without an effect: 0.25", "few": "",
        "size": "50 of 100", "reason": "",
        "sure": "p 0.020, corrected for 2 findings \u00b7 n 40", "needed": "", "look": "look here",
        "docs": "docs/bias.md", "exploratory": False,
    }  # fmt: skip
    assert {name: told[name] for name in expected} == expected and told["hint"]
    assert second.audit == "y" and second.sure == "p 0.020 \u00b7 n 40"
    (unknown,) = findings[0].unknown
    shown = {name: getattr(unknown, name) for name in expected}
    nothing = dict.fromkeys(("value", "interval", "unit", "null", "few", "size", "docs", "look"), "")
    assert shown == {
        **expected, **nothing, "key": "bare", "statement": "Does it?", "verdict": "cannot tell", "tone": "undecided",
        "bar": "", "sure": "p 0.50", "reason": "too few", "exploratory": True,
    }  # fmt: skip
    assert unknown.hint == ""
    (void,) = overall(run(case(1, findings=(FOUND, NONE)), BROKEN))[1]
    assert (void.found, void.absent, void.void) == ((), (), 2)
