"""Needle: facts hidden at exact depths in prompts of exact length, and whether a model finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lm_audit.shared.lazy import lazy

if TYPE_CHECKING:
    from lm_audit.audits.needle.answers.answerers import Answer, Answerer, ModelAnswerer
    from lm_audit.audits.needle.answers.evaluation import answered, evaluate, grid_evidence
    from lm_audit.audits.needle.answers.outputs import score_outputs
    from lm_audit.audits.needle.answers.scores import precision, score_all, score_any, score_boundary
    from lm_audit.audits.needle.grid.cliff import samples_needed
    from lm_audit.audits.needle.grid.folder import read_folder
    from lm_audit.audits.needle.grid.writing import grid_samples, write_grid
    from lm_audit.audits.needle.haystack.sentences import split_sentences
    from lm_audit.audits.needle.haystack.text import Haystack
    from lm_audit.audits.needle.haystack.windows import nearest_boundary
    from lm_audit.audits.needle.samples.building import build_sample
    from lm_audit.audits.needle.samples.config import NeedleConfig
    from lm_audit.audits.needle.samples.presets import PRESETS
    from lm_audit.audits.needle.samples.sample import Sample
    from lm_audit.audits.needle.samples.sequences import basis_points, depth_sequence, length_sequence, spread_depths
    from lm_audit.audits.needle.samples.task import BuildOptions, NeedleTask
    from lm_audit.audits.needle.samples.wording import Needle, needle_sentence, task_wording
else:
    __getattr__, __dir__ = lazy(__name__, __file__)

__all__ = [
    "PRESETS",
    "Answer",
    "Answerer",
    "BuildOptions",
    "Haystack",
    "ModelAnswerer",
    "Needle",
    "NeedleConfig",
    "NeedleTask",
    "Sample",
    "answered",
    "basis_points",
    "build_sample",
    "depth_sequence",
    "evaluate",
    "grid_evidence",
    "grid_samples",
    "length_sequence",
    "nearest_boundary",
    "needle_sentence",
    "precision",
    "read_folder",
    "samples_needed",
    "score_all",
    "score_any",
    "score_boundary",
    "score_outputs",
    "split_sentences",
    "spread_depths",
    "task_wording",
    "write_grid",
]
