"""How many random histories a run has played, and what was in them: said at its end.

A test notes it with `played`; it comes back from the workers of pytest-xdist with the test's report.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

import pytest

HISTORIES = "histories"
"""The name of the property, and of what there is one of in each."""


def played(note: Callable[[str, object], None], of: str, counts: Mapping[str, int]) -> None:
    """Note, by pytest's `record_property`, how much there was of what in histories of something."""
    note(HISTORIES, [of, dict(counts)])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write one line for each kind of history: how many there were, and their counts."""
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                for name, value in report.user_properties:
                    if name == HISTORIES:
                        of, counts = value  # type: ignore[misc]
                        totals[of].update(counts)
    for of, counts in sorted(totals.items()):
        summary = ", ".join(f"{count:,} {what}" for what, count in counts.items() if what != HISTORIES)
        terminalreporter.write_line(f"{counts[HISTORIES]:,} histories of {of}: {summary}")
