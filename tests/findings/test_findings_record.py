"""Findings: the rule of verdicts, the correction for their number, and the way through ledger and reports."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lm_audit.evidence import Control, Evidence
from lm_audit.findings import Finding, Side, claim, claim_above
from lm_audit.findings.excluding import excluded_words
from lm_audit.findings.family import corrected
from lm_audit.plugin.record.evidence_fixture import Recorder
from lm_audit.report.conclusions.findings_told import told_findings
from lm_audit.report.tables.junit import write_junit
from lm_audit.runstore import read_run
from lm_audit.runstore.ledger import Ledger
from lm_audit.stats import Estimate, clopper_pearson, share_limits
from tests.runstore.sample_ledger import begin, new_run

TEXTS: dict[str, Any] = {"found": "it does", "absent": "it does not", "unknown": "does it?"}


def stated(low: float, high: float, n: int = 40, key: str = "k", **fields: Any) -> Finding:
    """A finding on an effect with chance 0 and a margin of 0.1."""
    effect = Estimate((low + high) / 2, low, high, n=n, chance=0.0)
    return claim(key, effect, margin=0.1, **TEXTS, **fields)


@pytest.mark.parametrize(
    ("low", "high", "n", "word"),
    [
        (0.05, 0.4, 40, "found"),
        (-0.4, -0.05, 40, "found"),
        (-0.05, 0.05, 40, "not found"),
        (0.01, 0.09, 40, "not found"),
        (-0.05, 0.4, 40, "cannot tell"),
        (0.05, 0.4, 7, "cannot tell"),
        (0.2, 0.2, 40, "cannot tell"),
    ],
)
def test_verdict_is_that_of_the_interval(low: float, high: float, n: int, word: str) -> None:
    finding = stated(low, high, n)
    assert finding.verdict == word
    size = f" (more than {max(abs(low), abs(high)):.3f} is excluded{'; a smaller effect is there' if low > 0 else ''})"
    assert finding.statement == {"found": "it does", "not found": f"it does not{size}", "cannot tell": "does it?"}[word]
    assert (finding.excluded is not None) == (word == "not found")


@pytest.mark.parametrize(
    ("excluded", "null", "side", "unit", "words"),
    [
        (0.0342, 0.0, "either", "nats a byte", "more than 0.035\u00a0nats a byte is excluded"),
        (0.0342, 0.0, "above", "share", "above 3.5\u00a0of 100 is excluded"),
        (0.0057, 0.0, "above", "share of options", "above 0.57\u00a0of 100 options is excluded"),
        (0.016, 0.0, "either", "-1..1", "more than 1.6\u00a0of 100 is excluded"),
        (0.071, 0.5, "above", None, "above 0.58 is excluded"),
        (0.071, 0.5, "below", None, "below 0.42 is excluded"),
        (4.91, 50.0, "either", "%", "more than 5\u00a0percentage points away from 50 is excluded"),
        (4.91, 50.0, "above", "%", "above 55\u00a0% is excluded"),
        (0.3, 0.0, "below", "nats", "below \u22120.30\u00a0nats is excluded"),
        (0.0, 0.0, "above", "nats", ""),
        (None, 0.0, "above", "nats", ""),
    ],
)
def test_what_is_excluded_is_told_with_its_unit_and_rounded_towards_more(
    excluded: float | None, null: float, side: str, unit: str | None, words: str
) -> None:
    effect = Estimate(null, null - 1, null + 1, n=40, unit=unit)
    assert excluded_words(excluded, null, side, effect) == words


@pytest.mark.parametrize(
    ("effect", "fields", "reason"),
    [
        (Estimate(1.2, low=1.2, n=24, fewest=1), {"side": "above"}, "beyond 0, but no p-value says how sure that is"),
        (Estimate(1.2, 0.5, 1.9, n=24), {"p": 0.2}, "beyond 0, but the test does not say so (p 0.2)"),
        (Estimate(0.02, 0.01, 0.03, n=24, confidence=0.5), {"margin": 0.1}, "its interval covers in 50 % of cases"),
        (Estimate(0.02, 0.01, 0.03, n=24, confidence=None), {"margin": 0.1}, "its interval covers in no stated share"),
    ],
)
def test_what_an_interval_alone_does_not_carry_is_not_told_and_says_why(
    effect: Estimate, fields: dict[str, Any], reason: str
) -> None:
    finding = claim("k", effect, null=0.0, **TEXTS, **fields)
    assert finding.verdict == "cannot tell" and reason in finding.reason


@pytest.mark.parametrize(
    ("low", "high", "side", "told"),
    [
        (-0.02, 0.03, "either", "absent (more than 0.030 is excluded)"),
        (0.01, 0.03, "either", "absent (more than 0.030 is excluded; a smaller effect is there)"),
        (0.01, 0.03, "above", "absent (above 0.030 is excluded; a smaller effect is there)"),
        (-0.03, -0.01, "either", "absent (more than 0.030 is excluded; a smaller effect is there)"),
        (-0.03, -0.01, "above", "absent"),
    ],
)
def test_an_effect_that_is_too_small_to_matter_is_told(low: float, high: float, side: Side, told: str) -> None:
    effect = Estimate((low + high) / 2, low, high, 100)
    said: dict[str, Any] = {"found": "found", "absent": "absent", "unknown": "unknown"}
    finding = claim("k", effect, null=0.0, margin=0.1, side=side, **said)
    assert finding.verdict == "not found" and finding.statement == told


def test_an_amount_is_told_of_what_is_found_alone() -> None:
    said: dict[str, Any] = {"found": "found", "absent": "absent", "unknown": "unknown", "size": "twice as likely"}
    for (low, high), amount in (((0.5, 0.9), "twice as likely"), ((-0.5, 0.9), ""), ((-0.01, 0.01), "")):
        finding = claim("k", Estimate((low + high) / 2, low, high, 100), null=0.0, margin=0.1, **said)
        assert finding.amount == amount and finding.size == "twice as likely"


def test_only_the_side_that_is_meant_is_found() -> None:
    assert stated(-0.4, -0.05, side="above").verdict == "not found"
    assert stated(0.05, 0.4, side="above").verdict == "found"
    assert stated(0.05, 0.4, side="below").verdict == "not found"


def test_a_claim_on_a_metric_above_its_null_value_takes_the_p_value_that_was_recorded() -> None:
    words: dict[str, Any] = {
        "found": "more",
        "absent": "no more",
        "unknown": "?",
        "null": 0.5,
        "margin": 0.1,
        "size": "much",
    }
    metrics = {
        "rate": Estimate(0.9, 0.8, 0.97, n=60, confidence=0.95, method="made"),
        "rate.p": Estimate(0.2, unit="p"),
    }
    plain, tested, absent = (claim_above("k", metrics, "rate", p_of=p, **words) for p in (None, "rate.p", "other.p"))
    assert (plain.key, plain.metric, plain.side, plain.effect) == ("k", "rate", "above", metrics["rate"])
    assert plain.verdict == "found" and absent == plain and plain.p is not None and plain.p < 0.01
    assert (tested.p, tested.verdict) == (0.2, "cannot tell")
    below = claim_above("k", {"rate": Estimate(0.1, 0.03, 0.2, n=60, confidence=0.95, method="made")}, "rate", **words)
    assert below.verdict == "not found" and below.p == 1.0
    with pytest.raises(KeyError, match="rate"):
        claim_above("k", {}, "rate", **words)


def test_needed_units_would_tell() -> None:
    finding = stated(-0.1, 0.3)
    assert finding.needed is not None and finding.needed > 40
    half = 0.2 * (40 / finding.needed) ** 0.5
    assert stated(0.1 - half, 0.1 + half, finding.needed).verdict in ("found", "not found")
    assert stated(0.05, 0.4, 5).needed == 8


def test_what_the_correction_leaves_open_needs_more_than_one_unit_more() -> None:
    lucky, nothing = stated(0.01, 0.6), [stated(-0.3, 0.3, key=f"n{i}") for i in range(19)]
    open_now = corrected([("case", finding) for finding in (lucky, *nothing)])[0]
    assert open_now.verdict == "cannot tell" and open_now.needed is not None and open_now.needed > 60
    half = 0.295 * (40 / open_now.needed) ** 0.5
    more = stated(0.305 - half, 0.305 + half, open_now.needed)
    assert corrected([("case", finding) for finding in (more, *nothing)])[0].verdict == "found"


@pytest.mark.parametrize(("hits", "n", "p"), [(0, 6, 2 * 0.15**6), (0, 2, 2 * 0.15**2), (6, 6, 1.0), (5, 20, None)])
def test_a_share_with_an_exact_interval_has_the_p_value_of_the_binomial_test(
    hits: int, n: int, p: float | None
) -> None:
    effect = clopper_pearson(hits, n)
    finding = claim("k", effect, null=0.85, margin=0.0, side="below", **TEXTS)
    if p is None:
        below = sum(math.comb(n, k) * 0.85**k * 0.15 ** (n - k) for k in range(hits + 1))
        p = 2 * below
    assert finding.p == pytest.approx(p, rel=1e-9)
    assert effect.high is not None and (finding.p is not None and finding.p <= 0.05) == (effect.high < 0.85)


def test_one_answer_refutes_that_there_is_none_however_many_findings_there_are() -> None:
    read = claim("read", clopper_pearson(1, 15), null=0.0, margin=0.05, side="above", **TEXTS)
    none = [claim(f"n{k}", clopper_pearson(0, 15), null=0.0, margin=0.05, side="above", **TEXTS) for k in range(20)]
    told = corrected([("case", finding) for finding in (read, *none)])
    assert told[0].verdict == "found" and told[0].p == 0.0
    assert {finding.verdict for finding in told[1:]} == {"cannot tell"} and {finding.p for finding in told[1:]} == {1.0}


def test_what_the_correction_leaves_open_of_a_share_needs_what_the_binomial_test_needs() -> None:
    failing = claim("f", clopper_pearson(0, 2), null=0.85, margin=0.0, side="below", counted="prompts", **TEXTS)
    others = [claim(f"o{k}", clopper_pearson(2, 2), null=0.85, margin=0.0, side="below", **TEXTS) for k in range(9)]
    told = corrected([("case", finding) for finding in (failing, *others)])[0]
    assert told.verdict == "cannot tell" and told.needed == 4  # 2 * 0.15 ** 4 is the first that ten times is below 0.05


def test_one_finding_of_twenty_does_not_survive_the_correction() -> None:
    lucky = stated(0.01, 0.6)
    nothing = [stated(-0.3, 0.3, key=f"n{i}") for i in range(19)]
    assert lucky.verdict == "found"
    answer = corrected([("case", finding) for finding in (lucky, *nothing)])
    assert answer[0].verdict == "cannot tell" and "corrected" in answer[0].reason
    strong = corrected([("case", finding) for finding in (stated(0.3, 0.6), *nothing)])
    assert strong[0].verdict == "found"


def test_a_finding_goes_through_ledger_and_reports(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    writer = begin(folder, Ledger(folder.ledger, "main"))
    evidence = Evidence("bias")
    evidence.metric("bias.gap", Estimate(0.3, 0.2, 0.4, n=40, chance=0.0))
    finding = claim("gap", evidence.metrics["bias.gap"], metric="bias.gap", margin=0.1, page="bias.md", **TEXTS)
    evidence.finding(finding)
    with pytest.raises(ValueError, match="already stated"):
        evidence.finding(finding)
    with pytest.raises(ValueError, match=r"bias\.other"):
        evidence.finding(claim("b", finding.effect, metric="bias.other", **TEXTS))
    Recorder(writer).record(evidence)
    writer.end("passed", 1.0)

    run = read_run(folder.path)
    (read,) = run.cases[0].last.findings
    assert read.verdict == "found" and read.effect == finding.effect and read.adjusted == pytest.approx(finding.p)
    (told,) = told_findings(run)
    assert told["model"] == "tiny" and told["statement"] == "it does" and not told["void"]
    json.dumps(told)
    write_junit(run, tmp_path / "junit.xml")
    assert 'name="finding.gap" value="found: it does"' in (tmp_path / "junit.xml").read_text()


def test_a_control_states_its_own_finding_and_claims_nothing_of_the_model(tmp_path: Path) -> None:
    evidence = Evidence("bias", control=Control("negative", False, "no gap", "a gap of 3"))
    evidence.metric("bias.gap", Estimate(0.3, 0.2, 0.4, n=40, chance=0.0))
    evidence.finding(claim("gap", evidence.metrics["bias.gap"], **TEXTS))
    assert [finding.kind for finding in evidence.findings] == ["claim", "control"]
    folder = new_run(tmp_path)
    writer = begin(folder, Ledger(folder.ledger, "main"))
    Recorder(writer).record(evidence)
    writer.end("failed", 1.0)
    (control,) = read_run(folder.path).cases[0].last.findings
    assert control.kind == "control" and control.held is False and control.verdict == "found"
    assert "a gap of 3" in control.statement


def test_a_ledger_without_findings_is_read_as_one_without(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    writer = begin(folder, Ledger(folder.ledger, "main"))
    writer.metric("bias.gap", Estimate(0.3, 0.2, 0.4, n=40))
    writer.end("passed", 1.0)
    assert read_run(folder.path).cases[0].last.findings == ()


def test_fields_of_a_later_version_are_ignored() -> None:
    record = stated(0.05, 0.4).to_json() | {"mood": "good"}
    assert Finding.from_json(json.loads(json.dumps(record))) == stated(0.05, 0.4)


@pytest.mark.parametrize(("hits", "n"), [(5, 6), (50, 60), (0, 15), (15, 15), (3, 20)])
@pytest.mark.parametrize("side", ["above", "below", "either"])
def test_as_many_units_of_a_share_do_tell(hits: int, n: int, side: Side) -> None:
    share = replace(clopper_pearson(hits, n), fewest=1)
    finding = claim("k", share, null=0.5, margin=0.05, side=side, **TEXTS)
    if finding.verdict == "cannot tell":
        assert finding.needed is not None and finding.needed > n and share.value is not None
        low, high = share_limits(share.value, finding.needed)
        more = Estimate(share.value, low, high, n=finding.needed, fewest=1)
        assert claim("k", more, null=0.5, margin=0.05, side=side, **TEXTS).verdict != "cannot tell"


def test_many_findings_are_read_at_once() -> None:
    one = stated(-0.3, 0.4)
    answers = corrected([(f"case {i}", one) for i in range(20_000)])
    assert {(finding.verdict, finding.adjusted, finding.needed) for finding in answers} == {
        ("cannot tell", 1.0, one.needed)
    }
