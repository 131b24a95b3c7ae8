"""Leakage: has the model memorised a multiple-choice benchmark, its wording or the order of its options?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lm_audit.shared.lazy import lazy

if TYPE_CHECKING:
    from lm_audit.audits.leakage.controls.expected import negative_control, positive_control
    from lm_audit.audits.leakage.controls.planted import made_up_benchmark, made_up_items, plant, trained_on
    from lm_audit.audits.leakage.half_option.completion import completions
    from lm_audit.audits.leakage.half_option.cuts import chat_opening
    from lm_audit.audits.leakage.half_option.prefixes import half_option_prefixes, published_match
    from lm_audit.audits.leakage.half_option.probing import probe, probe_chunks
    from lm_audit.audits.leakage.half_option.published import published_memorisation
    from lm_audit.audits.leakage.half_option.scores import dataset_score, mitigation, mitigation_share
    from lm_audit.audits.leakage.half_option.similarity import edit_distance, edit_similarity, rouge_l
    from lm_audit.audits.leakage.items.anchors import anchored_slots, is_order_dependent
    from lm_audit.audits.leakage.items.benchmark import Benchmark
    from lm_audit.audits.leakage.items.item import Item, full_text, shuffle_options
    from lm_audit.audits.leakage.items.loading import load_benchmark
    from lm_audit.audits.leakage.items.style import is_sorted, style_shares
    from lm_audit.audits.leakage.likelihood.scores import min_k, min_k_plus, ngram_accuracy, start_points
    from lm_audit.audits.leakage.likelihood.texts import text_likelihood
    from lm_audit.audits.leakage.memory import measure_memorisation, memorisation, memorisation_evidence
    from lm_audit.audits.leakage.orders.evidence import option_order, row_order
    from lm_audit.audits.leakage.orders.neighbours import Neighbours, neighbour_places, swap_test
    from lm_audit.audits.leakage.orders.permutations import shuffled_orders
    from lm_audit.audits.leakage.orders.ranking import order_test, summarise
    from lm_audit.audits.leakage.orders.rows import row_order_test, sharded_test
    from lm_audit.audits.leakage.overview import overview_evidence
    from lm_audit.audits.leakage.signs import paired_sign_flip, published_place_test
else:
    __getattr__, __dir__ = lazy(__name__, __file__)

__all__ = [
    "Benchmark",
    "Item",
    "Neighbours",
    "anchored_slots",
    "chat_opening",
    "completions",
    "dataset_score",
    "edit_distance",
    "edit_similarity",
    "full_text",
    "half_option_prefixes",
    "is_order_dependent",
    "is_sorted",
    "load_benchmark",
    "made_up_benchmark",
    "made_up_items",
    "measure_memorisation",
    "memorisation",
    "memorisation_evidence",
    "min_k",
    "min_k_plus",
    "mitigation",
    "mitigation_share",
    "negative_control",
    "neighbour_places",
    "ngram_accuracy",
    "option_order",
    "order_test",
    "overview_evidence",
    "paired_sign_flip",
    "plant",
    "positive_control",
    "probe",
    "probe_chunks",
    "published_match",
    "published_memorisation",
    "published_place_test",
    "rouge_l",
    "row_order",
    "row_order_test",
    "sharded_test",
    "shuffle_options",
    "shuffled_orders",
    "start_points",
    "style_shares",
    "summarise",
    "swap_test",
    "text_likelihood",
    "trained_on",
]
