"""Distinct requests and distinct input sequences, sorted so that shared prefixes are neighbours.

Sorted sequences with the length of the common prefix of each with the one before it are a prefix tree in preorder:
sequence i adds the nodes ``ids[i][lcp[i]:]`` below the path that it shares with sequence i-1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lm_audit.models.scoring.requests import Encoded

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Distinct input sequences in lexicographic order.

    ``ids[i]`` the tokens, ``lcp[i]`` how many leading tokens row i shares with row i-1, ``requests[i]`` the indices of
    the distinct requests that read this row.
    """

    ids: list[Ids]
    lcp: list[int]
    requests: list[list[int]]

    @property
    def lengths(self) -> list[int]:
        return [len(row) for row in self.ids]

    def subset(self, keep: Sequence[int]) -> Rows:
        """The rows at the ascending indices ``keep``."""
        ids = [self.ids[i] for i in keep]
        return Rows(ids, common_prefixes(ids), [self.requests[i] for i in keep])

    def without_prefixes(self) -> Rows:
        """Only rows that no later row begins with; a request moves to the longest row that begins with its own."""
        kept: list[int] = []
        requests: list[list[int]] = []
        carried: list[int] = []
        for i, row in enumerate(self.ids):
            carried = carried + self.requests[i]
            if i + 1 < len(self.ids) and self.lcp[i + 1] == len(row):
                continue
            kept.append(i)
            requests.append(carried)
            carried = []
        ids = [self.ids[i] for i in kept]
        return Rows(ids, common_prefixes(ids), requests)


def distinct_requests(encoded: Sequence[Encoded]) -> tuple[list[int], list[int]]:
    """Indices of the first of every distinct request, and for each request the place of its like among them."""
    places: dict[tuple[bytes, int], int] = {}
    firsts: list[int] = []
    inverse: list[int] = []
    for i, item in enumerate(encoded):
        place = places.setdefault((item.ids.tobytes(), item.first_scored), len(firsts))
        if place == len(firsts):
            firsts.append(i)
        inverse.append(place)
    return firsts, inverse


def sorted_rows(encoded: Sequence[Encoded]) -> Rows:
    """The distinct input sequences (all tokens but the last) of the requests that have something to score."""
    by_key: dict[bytes, list[int]] = {}
    for i, item in enumerate(encoded):
        if item.inputs:
            # Big-endian bytes compare as the sequences of numbers do, a prefix before what it begins.
            by_key.setdefault(item.ids[:-1].astype(">u4").tobytes(), []).append(i)
    keys = sorted(by_key)
    ids = [encoded[by_key[key][0]].ids[:-1] for key in keys]
    return Rows(ids, common_prefixes(ids), [by_key[key] for key in keys])


def common_prefixes(rows: Sequence[Ids]) -> list[int]:
    """For each row the number of leading tokens that it shares with the row before it; 0 for the first."""
    if len(rows) < 2:
        return [0] * len(rows)
    lengths = np.array([len(row) for row in rows])
    flat = np.concatenate(rows)
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    shorter = np.minimum(lengths[:-1], lengths[1:])
    segments = np.concatenate([[0], np.cumsum(shorter)[:-1]])
    place = np.arange(shorter.sum()) - np.repeat(segments, shorter)
    differs = flat[np.repeat(begins[:-1], shorter) + place] != flat[np.repeat(begins[1:], shorter) + place]
    first = np.minimum.reduceat(np.where(differs, place, np.repeat(shorter, shorter)), segments)
    return [0, *first.tolist()]
