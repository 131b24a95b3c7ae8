"""Statistics for audits: intervals, tests, ranking metrics, privacy bounds. Knows nothing of models or pytest.

Only :class:`Estimate` is loaded with the package; every other name loads its module, and scipy, on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lm_audit.shared.lazy import lazy
from lm_audit.stats.estimate import Estimate

if TYPE_CHECKING:
    from lm_audit.stats.bootstrap.clustered import bootstrap_clustered, bootstrap_crossed, two_way_mean
    from lm_audit.stats.bootstrap.samples import bootstrap_ci, bootstrap_paired, bootstrap_two_sample
    from lm_audit.stats.comparison import Comparison, compare_independent, compare_paired
    from lm_audit.stats.decision import Decision, decide
    from lm_audit.stats.effects import Direction, PairedEffect, PairedTest, paired_effect
    from lm_audit.stats.leaks.epsilon import epsilon_from_rates, one_run_epsilon, one_run_p_value
    from lm_audit.stats.leaks.exposure import (
        SampledExposure,
        even_rank_bits,
        exposure_exact,
        exposure_extrapolated,
        exposure_sampled,
        fit_skew_normal,
        mean_exposure,
        secret_entropy_bits,
    )
    from lm_audit.stats.leaks.lira import lira_offline, lira_online
    from lm_audit.stats.means.bounded import bounded_mean
    from lm_audit.stats.means.cluster_robust import clustered_mean
    from lm_audit.stats.means.crossed import (
        ClusteredSignFlip,
        CrossedContrast,
        clustered_sign_flip,
        crossed_contrast,
        grid_mean_squares,
        max_min,
        max_min_permutation,
        max_min_two_way,
        two_way_p_value,
    )
    from lm_audit.stats.means.independent import mean_interval
    from lm_audit.stats.means.mean_difference import MeanDifference, studentised_difference
    from lm_audit.stats.means.studentised import studentised_mean
    from lm_audit.stats.multiplicity.adjustment import benjamini_hochberg, holm
    from lm_audit.stats.multiplicity.families import able, family_weights, weighted_holm
    from lm_audit.stats.ranking.scores import (
        DetectionRate,
        delong_se,
        mann_whitney_p,
        pr_auc,
        roc_auc,
        tpr_at_fpr,
        tpr_statistic,
    )
    from lm_audit.stats.shares.clustered_share import share, share_limits
    from lm_audit.stats.shares.proportions import clopper_pearson, mcnemar_exact, share_difference, wilson
    from lm_audit.stats.testing.equivalence import crossed_equivalence, equivalence_test, within_margin
    from lm_audit.stats.testing.permutation import permutation_test, sign_flip_test
    from lm_audit.stats.testing.power import power_auc, power_paired_t, power_two_sample_t
else:
    __getattr__, __dir__ = lazy(__name__, __file__)

__all__ = [
    "ClusteredSignFlip",
    "Comparison",
    "CrossedContrast",
    "Decision",
    "DetectionRate",
    "Direction",
    "Estimate",
    "MeanDifference",
    "PairedEffect",
    "PairedTest",
    "SampledExposure",
    "able",
    "benjamini_hochberg",
    "bootstrap_ci",
    "bootstrap_clustered",
    "bootstrap_crossed",
    "bootstrap_paired",
    "bootstrap_two_sample",
    "bounded_mean",
    "clopper_pearson",
    "clustered_mean",
    "clustered_sign_flip",
    "compare_independent",
    "compare_paired",
    "crossed_contrast",
    "crossed_equivalence",
    "decide",
    "delong_se",
    "epsilon_from_rates",
    "equivalence_test",
    "even_rank_bits",
    "exposure_exact",
    "exposure_extrapolated",
    "exposure_sampled",
    "family_weights",
    "fit_skew_normal",
    "grid_mean_squares",
    "holm",
    "lira_offline",
    "lira_online",
    "mann_whitney_p",
    "max_min",
    "max_min_permutation",
    "max_min_two_way",
    "mcnemar_exact",
    "mean_exposure",
    "mean_interval",
    "one_run_epsilon",
    "one_run_p_value",
    "paired_effect",
    "permutation_test",
    "power_auc",
    "power_paired_t",
    "power_two_sample_t",
    "pr_auc",
    "roc_auc",
    "secret_entropy_bits",
    "share",
    "share_difference",
    "share_limits",
    "sign_flip_test",
    "studentised_difference",
    "studentised_mean",
    "tpr_at_fpr",
    "tpr_statistic",
    "two_way_mean",
    "two_way_p_value",
    "weighted_holm",
    "wilson",
    "within_margin",
]
