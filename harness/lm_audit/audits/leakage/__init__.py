"""Leakage: has the model memorised a multiple-choice benchmark, its wording or the order of its options?"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "items": ("Item", "full_text", "shuffle_options"),
    "anchors": ("anchored_slots", "is_order_dependent"),
    "prefixes": ("half_option_prefixes", "published_match"),
    "probing": ("probe", "probe_chunks"),
    "scores": ("dataset_score", "mitigation", "mitigation_share"),
    "signs": ("paired_sign_flip", "published_place_test"),
    "style": ("is_sorted", "style_shares"),
    "ranking": ("order_test", "summarise"),
    "neighbours": ("Neighbours", "neighbour_places", "swap_test"),
    "rowsorder": ("row_order_test", "sharded_test"),
    "likelihood": ("min_k", "min_k_plus", "ngram_accuracy", "start_points"),
    "similarity": ("edit_distance", "edit_similarity", "rouge_l"),
    "orders": ("shuffled_orders",),
    "benchmark": ("Benchmark", "load_benchmark"),
    "cuts": ("chat_opening",),
    "memory": ("measure_memorisation", "memorisation", "memorisation_evidence"),
    "published": ("published_memorisation",),
    "completion": ("completions",),
    "texts": ("text_likelihood",),
    "orderevidence": ("option_order", "row_order"),
    "overview": ("overview_evidence",),
    "planted": ("made_up_benchmark", "made_up_items", "plant", "trained_on"),
    "controls": ("negative_control", "positive_control"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    # Lazily, so that collecting the cases imports neither torch nor pandas. No module bears the name of a public
    # function, since importing it would put the module in the function's place.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
