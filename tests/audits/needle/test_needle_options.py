"""Options that cannot be used are refused at collection, by name, before any model loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evals.test_needle import has_template
from lm_audit.audits.needle import NeedleConfig
from lm_audit.audits.needle.grid.feasible import smallest_length
from lm_audit.audits.needle.grid.plans import Asking, plans, without_needles
from lm_audit.audits.needle.grid.whole_grid import measurable
from lm_audit.audits.needle.options import OPTIONS
from lm_audit.errors import DataError, UsageError
from lm_audit.plugin import Case, RunOptions
from tests.plugin.toy_run import run_pytest

ROOT = Path(__file__).resolve().parents[3]
PLANS = ROOT / "fixtures" / "needle" / "plans.toml"
DEFAULTS = {option.name: option.default for option in OPTIONS}


def planned(**changes: Any) -> Any:
    return plans({**DEFAULTS, **changes}.__getitem__, "smoke", 0, PLANS, Asking("base"))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *[(name, bad) for name in ("depths", "samples", "tokens") for bad in ("0", "-1", "nan", "2.5", "", "1e3", "٣")],
        *[("threshold", bad) for bad in ("0", "1", "nan", "-0.5", "inf", "x")],
        *[("precision", bad) for bad in ("0", "nan", "-1", "0.5")],
        *[(name, "") for name in ("lengths", "haystack", "folder", "template")],
    ],
)
def test_a_number_that_is_none_is_refused_by_the_command_line(option: str, value: str) -> None:
    from argparse import ArgumentTypeError

    reader = next(one.type for one in OPTIONS if one.name == f"needle_{option}")

    with pytest.raises(ArgumentTypeError):
        reader(value)


@pytest.mark.parametrize("text", ["-5", "256,-1", "0", "256,256", "nan", "256,,512", "1e3", "256;512", "2.5", ","])
def test_lengths_that_cannot_be(text: str) -> None:
    with pytest.raises(UsageError, match="--needle-lengths"):
        planned(needle_lengths=text)


def test_depths_that_hundredths_of_a_percent_do_not_tell_apart() -> None:
    with pytest.raises(UsageError, match="finer than"):
        planned(needle_depths=20_001)


def test_given_values_count_whatever_they_are() -> None:
    (plan,) = planned(needle_samples=1, needle_depths=1, needle_tokens=1, needle_lengths="300")

    assert (plan.samples, plan.depths, plan.lengths, plan.config.tokens_to_generate) == (1, (50.0,), (300,), 1)


def test_a_preset_given_twice_and_options_beside_a_folder() -> None:
    with pytest.raises(UsageError, match="niah_single_1 is given twice"):
        planned(needle_preset=["niah_single_1", "niah_single_1"])
    with pytest.raises(UsageError, match="--needle-samples builds samples"):
        planned(needle_folder="grid", needle_samples=3)


def test_a_length_too_short_for_the_task_is_known_from_the_tokenizer_alone() -> None:
    from lm_audit.models.text.byte_tokenizer import byte_tokenizer

    (plan,) = planned(needle_lengths="60")
    assert smallest_length(plan, byte_tokenizer(512)) > 60
    (long,) = planned(needle_lengths="131072")
    assert smallest_length(long, byte_tokenizer(512)) == smallest_length(None, byte_tokenizer(512)) == 0


def test_a_length_without_room_is_skipped_with_its_reason_and_an_error_where_the_user_named_it() -> None:
    from lm_audit.models import load_model
    from lm_audit.models.text.byte_tokenizer import byte_tokenizer

    (plan,) = planned()
    smallest = smallest_length(plan, byte_tokenizer(512))
    short = plan.lengths[0]
    assert short < smallest
    told = f"length {short} .* smallest feasible length is {smallest}"
    (named,) = planned(needle_lengths=f"{short},{smallest}")
    with pytest.raises(pytest.skip.Exception, match=told):
        has_template(Case("x", {"plan": plan, "length": short}), byte_tokenizer(512), RunOptions())
    with pytest.raises(DataError, match=told):
        has_template(Case("x", {"plan": named, "length": short}), byte_tokenizer(512), RunOptions())
    for one in (plan, named):
        has_template(Case("x", {"plan": one, "length": smallest}), byte_tokenizer(512), RunOptions())
    lengths, reasons = measurable(load_model("tiny", device="cpu"), plan)
    assert lengths == [length for length in plan.lengths if length >= smallest]
    assert len(reasons) == len(plan.lengths) - len(lengths) > 0
    lengths, reasons = measurable(load_model("tiny", device="cpu"), named)
    assert lengths == [smallest] and f"length {plan.lengths[0]} is too short" in reasons[0]
    control = without_needles(plan, 3)
    assert (control.lengths, control.samples) == (plan.lengths, 3)


@pytest.mark.parametrize(
    ("name", "value"),
    [("target_length", 2.5), ("num_samples", True), ("num_positions", "3"), ("template", None), ("planted", 1),
     ("target_length", -4), ("start_length", 0), ("random_seed", -1), ("tokens_to_generate", -1)],
)  # fmt: skip
def test_a_configuration_of_the_wrong_type_is_named(name: str, value: Any) -> None:
    given = {"target_length": 1000, "length_interval": 500, "num_positions": 3, "num_samples": 2, name: value}

    with pytest.raises(UsageError, match=f"{name.replace('_', '[ _]')}|tokens to generate"):
        NeedleConfig.from_mapping(given)


@pytest.mark.parametrize("content", ["", "[smoke]\nlengths = 3", "\x00", "[smoke", "[other]\n"])
def test_a_file_of_sizes_that_is_none_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "plans.toml"
    path.write_text(content)

    with pytest.raises(DataError, match=r"plans\.toml"):
        plans(DEFAULTS.__getitem__, "smoke", 0, path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--chat", "off", "--needle-template", "chat"], "--chat off and --needle-template"),
        (["--chat", "on", "--needle-template", "Q: {task_template}"], "are two templates"),
        (["--chat", "off", "--chat-args", "a=1"], "--chat-args"),
        (["--thinking-tokens", "-1"], "--thinking-tokens"),
        (["--needle-samples", "0"], "--needle-samples"),
    ],
)
def test_the_command_line_refuses_before_anything_runs(given: list[str], message: str) -> None:
    done = run_pytest(ROOT, "evals/test_needle.py", "--collect-only", "-q", *given, plugins=())

    assert done.code != 0 and message in done.output
    assert "Traceback" not in done.output and "INTERNALERROR" not in done.output
