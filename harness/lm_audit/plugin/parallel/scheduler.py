"""The affinity queue behind pytest-xdist: ``pytest_xdist_make_scheduler`` and xdist's scheduling protocol.

Takes the place of xdist's ``load`` mode, the one that ``-n`` selects; any other ``--dist`` that the user names is
respected. xdist's own grouping modes lose or repeat cases after a crash (pytest-xdist issues 1323, 1371), and
``loadgroup`` does not group with pytest 9.2 (1386).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from lm_audit.plugin.activation import is_awake
from lm_audit.plugin.options.naming import declare
from lm_audit.plugin.parallel.affinity import DEFAULT_MAX_CRASHES
from lm_audit.plugin.parallel.affinity_scheduling import AffinityScheduling
from lm_audit.shared.number_checks import whole_number

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

scheduling_key = pytest.StashKey["AffinityScheduling"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--max-model-crashes``."""
    group = parser.getgroup("lm-audit")
    declare(
        group,
        "--max-model-crashes",
        dest="lm_audit_max_model_crashes",
        type=whole_number(1, 10**6),
        default=DEFAULT_MAX_CRASHES,
        metavar="N",
        help=f"with -n or --ray: after N worker crashes in cases of one model, do not run its other cases (default "
        f"{DEFAULT_MAX_CRASHES})",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ChosenScheduling | None:
    """The affinity scheduler in place of xdist's ``load`` where there are audit cases, None for any other mode."""
    return ChosenScheduling(config, log) if config.getvalue("dist") == "load" else None


def pytest_lm_audit_loop_end(session: pytest.Session, stopped: bool) -> None:
    """Report what the scheduler could not give to any worker; nothing is lost silently."""
    scheduling = session.config.stash.get(scheduling_key, None)
    if scheduling is not None and not stopped:
        scheduling.report_unrun()


class ChosenScheduling:
    """Decides once a worker has collected: the affinity scheduler if there are audit cases, else xdist's own ``load``.

    Until then xdist only tells which workers have come up or gone.
    """

    def __init__(self, config: pytest.Config, log: object) -> None:
        self._config = config
        self._log = log
        self._chosen: Any = None
        self._waiting: list[WorkerController] = []

    @property
    def nodes(self) -> list[WorkerController]:
        """The workers that are alive."""
        return list(self._waiting) if self._chosen is None else list(self._chosen.nodes)

    @property
    def collection_is_completed(self) -> bool:
        """Whether all initial workers have collected."""
        return self._chosen is not None and bool(self._chosen.collection_is_completed)

    @property
    def tests_finished(self) -> bool:
        """Whether every case is finished or is the last one of its worker."""
        return self._chosen is not None and bool(self._chosen.tests_finished)

    @property
    def has_pending(self) -> bool:
        """Whether any case is queued or held."""
        return self._chosen is not None and bool(self._chosen.has_pending)

    def add_node(self, node: WorkerController) -> None:
        """A worker is up and begins to collect."""
        self._waiting.append(node) if self._chosen is None else self._chosen.add_node(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """A worker ended or died: the id of the case that it was running, if any. ``KeyError`` if it is unknown."""
        if self._chosen is not None:
            found: str | None = self._chosen.remove_node(node)
            return found
        if node not in self._waiting:
            raise KeyError(node)
        self._waiting.remove(node)
        return None

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """A worker has collected, which shows whether there are audit cases."""
        if self._chosen is None:
            self._chosen = self._choose()
            for waiting in self._waiting:
                self._chosen.add_node(waiting)
        self._chosen.add_node_collection(node, collection)

    def _choose(self) -> Any:
        if not is_awake(self._config):
            from xdist.scheduler import LoadScheduling

            return LoadScheduling(self._config, self._log)
        scheduling = AffinityScheduling(self._config)
        self._config.stash[scheduling_key] = scheduling
        self._config.pluginmanager.register(scheduling, "lm-audit-scheduling")
        return scheduling

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class that xdist names when it says how it schedules."""
        return type(self) if self._chosen is None else type(self._chosen)

    def __getattr__(self, name: str) -> Any:
        """All else of xdist's protocol comes after the first collection."""
        return getattr(self._chosen, name)
