"""Names of failed tests at the moment they fail: the summary of the whole suite comes much later."""

from __future__ import annotations

import pytest


class _Failures:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(f"{report.nodeid} failed ({report.when}, {report.duration:.0f} s)")


def pytest_configure(config: pytest.Config) -> None:
    """Write failures in the process that hears of all tests."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Failures(config), "failures_at_once")
