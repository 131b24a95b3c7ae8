"""A planted effect is said on the first screen, in the terminal and in summary.json; a clean model is not accused.

Of every audit but bias (tests/findings/test_audit_conclusions.py): the audit measures a model that was made to leak,
to miss or to copy, or its clean twin, and the whole report is written.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from pathlib import Path

from lm_audit.evidence import Evidence
from lm_audit.models import load_model
from lm_audit.report import report
from lm_audit.report.in_pytest.terminal import summary_lines
from lm_audit.runstore import read_run


@dataclass(frozen=True)
class Told:
    """What a report says was found: by the first screen, by the terminal, by summary.json."""

    heading: str
    screen: list[str]
    terminal: str
    summary: dict[str, str]

    def says(self, statement: str) -> bool:
        """Whether all three say so."""
        return (
            any(statement in one for one in self.screen)
            and statement in self.terminal
            and any(statement in one for one in self.summary)
        )


def told(folder: Path, *evidences: Evidence) -> Told:
    """Write the report of these cases and read it back."""
    page = report({f"case-{k}": evidence for k, evidence in enumerate(evidences)}, folder, model="mine")
    text = page.read_text(encoding="utf-8")
    findings = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["findings"]
    return Told(
        html.unescape(re.findall(r"<h1[^>]*>(.*?)</h1>", text, re.S)[0]).strip(),
        [html.unescape(one) for one in re.findall(r'<p class="f-say">(.*?)</p>', text)],
        " ".join(" ".join(summary_lines(read_run(folder), width=400)).split()),
        {one["statement"]: one["verdict"] for one in findings if one["verdict"] == "found"},
    )


def clean(found: Told) -> None:
    """Nothing is said to be found, anywhere."""
    assert found.heading.startswith("Nothing found") and found.screen == [] and found.summary == {}
    assert "! found" not in found.terminal


def test_questions_that_were_trained_on_are_found(tmp_path: Path) -> None:
    from lm_audit.audits.leakage import measure_memorisation, memorisation_evidence
    from lm_audit.audits.leakage.controls.planted import _benchmark, made_up_items, trained_on

    base, items = load_model("tiny", device="cpu"), made_up_items(24, seed=0)
    model, _ = trained_on(base, items[:12], seed=0)
    seen, unseen = (memorisation_evidence(measure_memorisation(model, _benchmark(part), orders=2, seed=0))
                    for part in (items[:12], items[12:]))  # fmt: skip
    assert told(tmp_path / "planted", seen).says(
        "The model prefers the printed order of the options of made-up: it has seen them"
    )
    clean(told(tmp_path / "clean", unseen))


def test_a_model_that_reads_the_middle_alone_is_found(tmp_path: Path) -> None:
    from lm_audit.audits.needle.answers.evaluation import answered, grid_evidence
    from lm_audit.audits.needle.controls.planted import planted_model
    from lm_audit.audits.needle.controls.stubs import MiddleReader, stub_samples

    samples = stub_samples(0, samples=5, lengths=(384, 512))
    middle, whole = (grid_evidence(answered(planted_model(seen), samples)) for seen in (MiddleReader().seen, 1.0))
    planted = told(tmp_path / "planted", middle)
    assert planted.heading == "2 effects found in mine."
    assert planted.says("The model finds fewer than 85 of 100 needles in prompts of 512 tokens")
    clean(told(tmp_path / "clean", whole))


def test_secrets_that_were_memorised_are_found(tmp_path: Path) -> None:
    from lm_audit.audits.privacy.audit import evidence_of, score_stages
    from lm_audit.audits.privacy.controls.trained_controls import planted_memory
    from lm_audit.audits.privacy.data.manifest import Manifest
    from lm_audit.audits.privacy.measure.stage_scores import ScoringOptions
    from lm_audit.models.toy.tiny_model import tiny_model

    memory, options = planted_memory(0), ScoringOptions(source_extraction=False, stress=False)
    pretended = [one.__class__(**{**vars(one), "role": "member", "repetitions": 1}) for one in memory.pretended[:40]]
    evidences = []
    for members in (memory.planted, pretended):
        manifest = Manifest((*members, *memory.twins[:60]), seed=0)
        stages = {"base": tiny_model(0), "sft": memory.model}
        scored = score_stages(stages, manifest, [], device="cpu", options=options)
        evidences.append(evidence_of(scored, manifest, options))
    planted = told(tmp_path / "planted", evidences[0])
    for statement in (
        "What the model after fine-tuning (sft) was trained on can be told from what it was not",
        "Secrets seen 16 times stand out in the model after fine-tuning (sft)",
        "Secrets can be read out of the model after fine-tuning (sft), third given",
        "The secrets entered the model in fine-tuning (Base_to_SFT)",
    ):
        assert planted.says(statement), statement
    clean(told(tmp_path / "clean", evidences[1]))


def test_an_explanation_of_a_model_that_copies_is_found_to_be_one(tmp_path: Path) -> None:
    from lm_audit.audits.faithfulness.audit import Settings, method_evidence
    from lm_audit.audits.faithfulness.controls.copier import copier, copy_samples
    from lm_audit.audits.faithfulness.controls.known_sources import randomised
    from lm_audit.audits.faithfulness.study import prepare

    model, samples = copier(0, "cpu"), copy_samples(10, 0)
    explained, nothing = (
        method_evidence([prepare(one, sample) for sample in samples], "ablation", Settings(steps=5))
        for one in (model, randomised(model, 99, 0))
    )
    assert told(tmp_path / "planted", explained).says("ablation explains better than random deletion on copy samples")
    clean(told(tmp_path / "clean", nothing))
