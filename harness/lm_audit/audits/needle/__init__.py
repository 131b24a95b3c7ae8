"""Needle: facts hidden at exact depths in prompts of exact length, and whether a model finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lm_audit.lazy import lazy

if TYPE_CHECKING:
    from lm_audit.audits.needle.answers import Answer, Answerer, ModelAnswerer
    from lm_audit.audits.needle.building import BuildOptions, NeedleTask, build_sample
    from lm_audit.audits.needle.cliff import samples_needed
    from lm_audit.audits.needle.config import NeedleConfig
    from lm_audit.audits.needle.evaluation import answered, evaluate, grid_evidence
    from lm_audit.audits.needle.grid import grid_samples, write_grid
    from lm_audit.audits.needle.gridfiles import read_folder
    from lm_audit.audits.needle.haystack import Haystack
    from lm_audit.audits.needle.outputs import score_outputs
    from lm_audit.audits.needle.placing import nearest_boundary
    from lm_audit.audits.needle.presets import PRESETS
    from lm_audit.audits.needle.sample import Sample
    from lm_audit.audits.needle.scores import precision, score_all, score_any, score_boundary
    from lm_audit.audits.needle.sentences import split_sentences
    from lm_audit.audits.needle.sequences import basis_points, depth_sequence, length_sequence, spread_depths
    from lm_audit.audits.needle.wording import Needle, needle_sentence, task_wording
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
