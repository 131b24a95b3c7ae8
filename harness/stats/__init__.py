"""Statistics for audits: intervals, tests, ranking metrics, privacy bounds. Knows nothing of models or pytest.

Only :class:`Estimate` is loaded with the package; every other name loads its module, and scipy, on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harness.stats.estimate import Estimate

if TYPE_CHECKING:
    from harness.stats.bootstrap import bootstrap_ci, bootstrap_paired, bootstrap_two_sample
    from harness.stats.clustered import bootstrap_clustered, bootstrap_crossed
    from harness.stats.multiple import benjamini_hochberg, holm
    from harness.stats.permutation import permutation_test, sign_flip_test
    from harness.stats.proportions import clopper_pearson, mcnemar_exact, wilson
    from harness.stats.ranking import (
        DetectionRate,
        delong_se,
        mann_whitney_p,
        pr_auc,
        roc_auc,
        tpr_at_fpr,
        tpr_statistic,
    )

_HOMES = {
    "bootstrap": ("bootstrap_ci", "bootstrap_paired", "bootstrap_two_sample"),
    "clustered": ("bootstrap_clustered", "bootstrap_crossed"),
    "multiple": ("benjamini_hochberg", "holm"),
    "permutation": ("permutation_test", "sign_flip_test"),
    "proportions": ("clopper_pearson", "mcnemar_exact", "wilson"),
    "ranking": (
        "DetectionRate",
        "delong_se",
        "mann_whitney_p",
        "pr_auc",
        "roc_auc",
        "tpr_at_fpr",
        "tpr_statistic",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "DetectionRate",
    "Estimate",
    "benjamini_hochberg",
    "bootstrap_ci",
    "bootstrap_clustered",
    "bootstrap_crossed",
    "bootstrap_paired",
    "bootstrap_two_sample",
    "clopper_pearson",
    "delong_se",
    "holm",
    "mann_whitney_p",
    "mcnemar_exact",
    "permutation_test",
    "pr_auc",
    "roc_auc",
    "sign_flip_test",
    "tpr_at_fpr",
    "tpr_statistic",
    "wilson",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
