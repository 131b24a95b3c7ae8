"""Coverage of the bias audit's intervals under the audit's designs.

    python benchmarks/coverage_bias.py --runs 300 --jobs 8
    python benchmarks/coverage_bias.py --equal 4000           # only how often 0 is excluded where all groups are equal

Disparities: groups x templates x pairs with effects of templates and pairs on each group (SD 0.35 nats) and cells
(0.6). Shares: requests in draws that hang together (latent normal), two groups with correlated requests.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))

from scipy.stats import norm

from lm_audit.stats import share
from lm_audit.stats.means.disparity import max_min_disparity, max_min_p
from lm_audit.stats.shares.share_differences import clustered_share_difference


def disparity(task: tuple[int, int, int, tuple[float, ...], float, int]) -> str:
    """One design: groups x rows x columns, the groups' means, the spread of the first group against the others."""
    groups, rows, columns, means, wider, runs = task
    rng, true, held, above = np.random.default_rng([1, groups, rows, columns]), np.ptp(means), 0, 0
    scale = np.array([wider, *[1.0] * (groups - 1)])[:, None, None]
    for run in range(runs):
        noise = rng.normal(0, 0.35, (groups, rows, 1)) + rng.normal(0, 0.35, (groups, 1, columns))
        noise = scale * (noise + rng.normal(0, 0.6, (groups, rows, columns)))
        found = max_min_disparity(np.array(means)[:, None, None] + noise, seed=run).estimate
        assert found.low is not None and found.high is not None
        held += found.low <= true <= found.high
        above += found.low > 0
    what = f"disparity of {groups} groups, {rows} x {columns}, true {true:g}, first group {wider:g} times as wide"
    return f"{what}: covers {100 * held / runs:.1f}%, excludes 0 in {100 * above / runs:.1f}%"


def equal(task: tuple[int, int, float, int]) -> str:
    """Groups that are all equal: how often the interval excludes 0, by the p-value that always agrees with it."""
    groups, levels, wider, runs = task
    rng, above = np.random.default_rng([21, groups, levels, int(wider)]), 0
    scale = np.array([wider, *[1.0] * (groups - 1)])[:, None, None]
    for run in range(runs):
        noise = rng.normal(0, 0.35, (groups, levels, 1)) + rng.normal(0, 0.35, (groups, 1, levels))
        p = max_min_p(scale * (noise + rng.normal(0, 0.6, (groups, levels, levels))), seed=run)
        above += p is not None and p < 0.05
    share = above / runs
    what = f"{groups} equal groups, {levels} x {levels}, first group {wider:g} times as wide"
    return f"{what}: excludes 0 in {100 * share:.1f}% ± {100 * (share * (1 - share) / runs) ** 0.5:.1f}"


def shares(task: tuple[int, int, float, float, float, float, int]) -> str:
    """One design: requests, draws, two shares, how draws hang together, how the groups' requests do."""
    requests, draws, first, second, icc, together, runs = task
    rng, held, own = np.random.default_rng([2, requests, draws]), 0, 0
    labels = np.repeat(np.arange(requests), draws)
    side = np.repeat([True, False], requests * draws)
    limits = np.array([norm.ppf(first), norm.ppf(second)])[:, None]
    for _ in range(runs):
        common = rng.normal(size=requests)
        effects = np.sqrt(together) * common + np.sqrt(1 - together) * rng.normal(size=(2, requests))
        noise = rng.normal(size=(2, requests * draws))
        latent = np.sqrt(icc) * np.repeat(effects, draws, axis=1) + np.sqrt(1 - icc) * noise
        answers = (latent < limits).astype(float)
        found = clustered_share_difference(answers.ravel(), side, np.tile(labels, 2))
        alone = share(answers[0], labels)
        assert found.low is not None and found.high is not None and alone.low is not None and alone.high is not None
        held += found.low <= first - second <= found.high
        own += alone.low <= first <= alone.high
    what = f"shares {first} and {second}, {requests} requests x {draws} draws, icc {icc}, groups {together}"
    return f"{what}: difference covers {100 * held / runs:.1f}%, share {100 * own / runs:.1f}%"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--equal", type=int, default=0, help="tables of equal groups, and nothing else")
    options = parser.parse_args()
    if options.equal:
        with ProcessPoolExecutor(options.jobs) as pool:
            tasks = [(g, n, w, options.equal) for g in (2, 4, 9) for n, w in ((12, 1.0), (6, 1.0), (12, 2.0))]
            for line in pool.map(equal, tasks):
                print(line, flush=True)
        return
    designs = [(g, n, n, (0.0,) * g, w) for g in (2, 4, 9) for n, w in ((12, 1.0), (6, 1.0), (12, 2.0))]
    designs += [(g, 12, 12, (0.5, *[0.0] * (g - 1)), 1.0) for g in (2, 4, 9)]
    designs += [(4, 12, 12, (0.0, 0.2, 0.4, 0.6), 1.0), (9, 6, 6, (1.0,) * 4 + (0.0,) * 5, 1.0)]
    pairs = ((0.1, 0.1), (0.5, 0.5), (0.3, 0.1), (0.7, 0.2), (0.02, 0.02))
    drawn = [(k, m, *p, 0.8, c, options.runs) for k, m in ((8, 3), (6, 3), (16, 1)) for p in pairs for c in (0.0, 1.0)]
    with ProcessPoolExecutor(options.jobs) as pool:
        for line in pool.map(disparity, [(*design, options.runs) for design in designs]):
            print(line, flush=True)
        for line in pool.map(shares, drawn):
            print(line, flush=True)


if __name__ == "__main__":
    main()
