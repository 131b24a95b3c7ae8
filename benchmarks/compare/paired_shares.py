"""What an exact unconditional test of paired answers would find beside McNemar's, which `compare` makes.

    python benchmarks/compare/paired_shares.py     # exact counts, a second

Answers of `coverage_changes.py`: one is right where its item (standard deviation 1) and the run's noise (0.5) together
lie above 0; the second run adds one standard deviation. The unconditional test orders all outcomes by
(gained - lost)^2 / (gained + lost) and takes the largest p over how many answers change at all (Suissa and Shuster
1985). Nothing tells it beforehand that a case cannot reach its share of the 5 %, so that each of ten cases takes a
tenth; McNemar's leaves out those whose answers hardly moved (Tarone 1990).
"""

from __future__ import annotations

import argparse
from math import comb

import numpy as np
from scipy.stats import binom, multinomial, norm

NOISE, EFFECT, LEVEL, CASES = 0.5, 1.0, 0.05, 10
NUISANCE = np.linspace(0.001, 0.999, 999)
SIZES = (12, 18, 24, 36)


def chances(effect: float) -> tuple[float, float, float]:
    """That an answer is gained, lost, or stays."""
    items = np.linspace(-8, 8, 8001)
    weights = norm.pdf(items) / norm.pdf(items).sum()
    before, after = norm.cdf(items / NOISE), norm.cdf((items + effect) / NOISE)
    gained, lost = (float((weights * one).sum()) for one in ((1 - before) * after, before * (1 - after)))
    return gained, lost, 1 - gained - lost


def both_tests(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All outcomes (gained, lost) of ``n`` answers, McNemar's exact p of each, and the unconditional one."""
    outcomes = np.array([(up, down) for up in range(n + 1) for down in range(n + 1 - up)])
    up, down = outcomes.T
    moved = up + down
    mcnemar = np.minimum(1.0, 2 * binom.cdf(np.minimum(up, down), moved, 0.5))
    size = np.divide((up - down) ** 2, moved, out=np.zeros(len(up)), where=moved > 0)
    alike = np.array([comb(m, u) / 2.0**m for m, u in zip(moved.tolist(), up.tolist(), strict=True)])
    order = np.argsort(-size, kind="stable")
    reached = np.cumsum((binom.pmf(moved, n, NUISANCE[:, None]) * alike)[:, order], axis=1)
    last = np.searchsorted(-size[order], -size[order] + 1e-9, side="right") - 1
    unconditional = np.empty(len(up))
    unconditional[order] = reached[:, last].max(axis=0)
    return outcomes, mcnemar, unconditional


def main() -> None:
    argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else None).parse_args()
    print("answers | McNemar | unconditional | McNemar, one of ten cases | unconditional, one of ten | false, of each")
    for n in SIZES:
        outcomes, mcnemar, unconditional = both_tests(n)
        rest = n - outcomes.sum(axis=1)
        found = multinomial.pmf(np.column_stack([outcomes, rest]), n, chances(EFFECT))
        null = multinomial.pmf(np.column_stack([outcomes, rest]), n, chances(0.0))
        alone = [float(found[p <= LEVEL].sum()) for p in (mcnemar, unconditional)]
        # In the nine other cases at most two answers changed: McNemar's test of such could never give 5 %.
        of_ten = [alone[0], float(found[unconditional <= LEVEL / CASES].sum())]
        false = [float(null[p <= LEVEL].sum()) for p in (mcnemar, unconditional)]
        print(n, *(f"{100 * share:.1f} %" for share in (*alone, *of_ten, *false)), sep=" | ")


if __name__ == "__main__":
    main()
