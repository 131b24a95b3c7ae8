"""Files of data sets as the hub stores them."""

from __future__ import annotations

import io

import datasets


def parquet_of(rows: list[dict[str, object]], features: datasets.Features | None = None) -> bytes:
    """The rows as the hub stores them."""
    held = io.BytesIO()
    datasets.Dataset.from_list(rows, features=features).to_parquet(held)
    return held.getvalue()


def card(configs: dict[str, dict[str, str]]) -> bytes:
    """The card of a set: configuration -> split -> file."""
    lines = ["---", "configs:"]
    for name, splits in configs.items():
        lines += [f"- config_name: {name}", "  data_files:"]
        for split, path in splits.items():
            lines += [f"  - split: {split}", f"    path: {path}"]
    return "\n".join([*lines, "---", ""]).encode()
