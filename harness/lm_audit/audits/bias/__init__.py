"""Bias: log-probability preference between words across social groups, and the public bias benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lm_audit.shared.lazy import lazy

if TYPE_CHECKING:
    from lm_audit.audits.bias.benchmarks.bbq.audit import bbq
    from lm_audit.audits.bias.benchmarks.bbq.written import bbq_generated
    from lm_audit.audits.bias.benchmarks.crows_pairs.audit import crows_pairs
    from lm_audit.audits.bias.benchmarks.public_controls import public_control
    from lm_audit.audits.bias.benchmarks.public_sets import SETS, load_set
    from lm_audit.audits.bias.benchmarks.rows import load_rows
    from lm_audit.audits.bias.benchmarks.sampling import stratified_sample
    from lm_audit.audits.bias.benchmarks.stereoset.audit import stereoset
    from lm_audit.audits.bias.benchmarks.wino.winobias import winobias
    from lm_audit.audits.bias.benchmarks.wino.winogender import winogender
    from lm_audit.audits.bias.benchmarks.wino.winogender_items import load_occupation_stats
    from lm_audit.audits.bias.generated.continuations import counterfactual_continuations
    from lm_audit.audits.bias.generated.counterfactual import counterfactual_swap, load_swap_items
    from lm_audit.audits.bias.generated.refusal import load_refusal_set, refusal_rates
    from lm_audit.audits.bias.grid.contrasts import Contrast, all_contrasts
    from lm_audit.audits.bias.grid.controls.cases import control_evidence
    from lm_audit.audits.bias.grid.controls.planted import decisions, nonce_contrast, nonce_prompts, plant_preference
    from lm_audit.audits.bias.grid.lexicon.file import load_preference_set
    from lm_audit.audits.bias.grid.lexicon.linting import lint, lint_tokens
    from lm_audit.audits.bias.grid.lexicon.parts import Axis, PreferenceSet, WordPair
    from lm_audit.audits.bias.grid.measurement import GridMeasurement, measure_grid
    from lm_audit.audits.bias.grid.minimal import ProbeResult, minimal_probe, probe_evidence
    from lm_audit.audits.bias.grid.preference import axis_evidence, preference_grid
    from lm_audit.audits.bias.grid.words import word_loglikelihood
else:
    __getattr__, __dir__ = lazy(__name__, __file__)

__all__ = [
    "SETS",
    "Axis",
    "Contrast",
    "GridMeasurement",
    "PreferenceSet",
    "ProbeResult",
    "WordPair",
    "all_contrasts",
    "axis_evidence",
    "bbq",
    "bbq_generated",
    "control_evidence",
    "counterfactual_continuations",
    "counterfactual_swap",
    "crows_pairs",
    "decisions",
    "lint",
    "lint_tokens",
    "load_occupation_stats",
    "load_preference_set",
    "load_refusal_set",
    "load_rows",
    "load_set",
    "load_swap_items",
    "measure_grid",
    "minimal_probe",
    "nonce_contrast",
    "nonce_prompts",
    "plant_preference",
    "preference_grid",
    "probe_evidence",
    "public_control",
    "refusal_rates",
    "stereoset",
    "stratified_sample",
    "winobias",
    "winogender",
    "word_loglikelihood",
]
