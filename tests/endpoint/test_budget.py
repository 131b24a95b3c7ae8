"""The limit on tokens is for all servers of a run together, and for all its sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from lm_audit.errors import BudgetError
from lm_audit.models.endpoint.client.budget import Budget


def test_two_servers_of_one_process_share_the_limit(tmp_path: Path) -> None:
    first, second = Budget(100, tmp_path), Budget(100, tmp_path)
    first.add(60)
    second.check()
    second.add(50)
    first.add(1)
    assert first.total == second.total == 111
    for budget in (first, second):
        with pytest.raises(BudgetError, match="111 tokens are spent"):
            budget.check()


def test_a_resumed_session_with_the_same_process_number_counts_on(tmp_path: Path) -> None:
    Budget(100, tmp_path).add(90)
    resumed = Budget(100, tmp_path)
    assert resumed.total == 90
    resumed.add(10)
    with pytest.raises(BudgetError):
        resumed.check()
