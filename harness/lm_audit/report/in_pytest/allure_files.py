"""Files of allure-pytest on a disk that refuses them."""

from __future__ import annotations

from collections.abc import Generator

from allure_commons import hookimpl


class AllureFiles:
    """What allure-pytest writes after each case: a file that the disk refuses is missing there, and the run goes on."""

    def __init__(self) -> None:
        self.refused: list[OSError] = []

    @hookimpl(wrapper=True)
    def report_result(self) -> Generator[None, object, object]:
        """Let a file go that cannot be written."""
        try:
            return (yield)
        except OSError as error:
            self.refused.append(error)
            return None

    report_container = report_attached_file = report_attached_data = report_globals = report_result
