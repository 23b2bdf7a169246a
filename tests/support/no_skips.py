"""MILLSTREAM_NO_SKIPS=1: a skip that is not allowed is a failure, with the reason it was skipped for.

A machine that has everything, as .ci/run makes one, skips nothing; a tool that came to be missing would
otherwise take its tests along unseen. Met are skips by a mark, by `pytest.skip` in a fixture or a test, and
those at collection: of a module, by `pytest.skip(allow_module_level=True)` or `importorskip`.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping

import pytest

VARIABLE = "MILLSTREAM_NO_SKIPS"

ALLOWED: Mapping[str, str] = {
    "network namespaces are not permitted here": "containers seldom may; proxies part them, too",
    "mounting is not allowed here": "containers seldom may mount, and the folders are tested without, too",
    "MILLSTREAM_NO_EXTENSIONS is set": "make test-uncompiled sets it; .ci/run unsets it for all else",
    "APICURIO_HOME names no folder": "the registry needs Java 21, which Debian 12 does not have",
    "this file system does not preallocate": "overlay and network file systems do not",
    "this file system keeps its pages in memory, or does not tell": "tmpfs is memory",
    "this file system keeps what it is told to forget": "tmpfs is memory",
}
"""Beginnings of permitted skips' reasons, and why nothing can be installed against each."""


def is_on() -> bool:
    """Return True if skips fail."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def reason_of(report: pytest.CollectReport | pytest.TestReport) -> str:
    """Return the reason of a skipped report."""
    place_and_reason = report.longrepr
    reason = str(place_and_reason[2]) if isinstance(place_and_reason, tuple) else str(place_and_reason)
    return reason.removeprefix("Skipped: ")


def refuse(report: pytest.CollectReport | pytest.TestReport) -> None:
    """Make a skip a failure unless it is allowed. An expected failure is reported as skipped, and is none."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = reason_of(report)
    if not any(reason.startswith(allowed) for allowed in ALLOWED):
        report.outcome = "failed"
        report.longrepr = f"skipped, which {VARIABLE} does not allow: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Refuse a skip in a test's setup, its call or its teardown."""
    report = yield
    if is_on():
        refuse(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Refuse a skip of a whole module."""
    report = yield
    if is_on():
        refuse(report)
    return report
