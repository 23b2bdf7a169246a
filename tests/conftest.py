"""Plugins and hooks of every test.

How deep it goes (`depth`), which worker runs it (`distribution`), whether it may be skipped (`no_skips`) or
passed before (`passed_before`); what fails (`failures_at_once`); how many histories there were
(`histories`).
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millstream.zookeeper import class_archive
from tests.support import depth, distribution, foreign_clients, spark_classes

pytest_plugins = [
    "tests.support.failures_at_once",
    "tests.support.histories",
    "tests.support.no_skips",
    "tests.support.passed_before",
]

depth.set_examples()
# A folder of the checkout, not of the home of the user who runs the tests.
os.environ.setdefault(class_archive.FOLDER, str(Path(__file__).parents[1] / "build" / "classes"))
# Tests read logs as people do. `tests/kafka_client/logs` has those of the format for programs.
os.environ.setdefault("MILLSTREAM_LOG_FORMAT", "text")
# Collecting makes a million objects that stay: looking through them for garbage again and again takes half of
# its time.
gc.disable()
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts us in the background has us ignore it, and with us the processes tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)

_left_out = pytest.StashKey[int]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    foreign_clients.forgive(items)
    left = depth.leave_out(items)
    config.hook.pytest_deselected(items=left)
    config.stash[_left_out] = len(left)
    if hasattr(config, "workeroutput"):  # in a worker of pytest-xdist
        config.workeroutput["left_out"] = len(left)
        distribution.in_order(items)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if distribution.group(item.nodeid) == distribution.SPARK_GROUP:
        spark_classes.use()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return distribution.GroupScheduling(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Store how many tests were left out when a worker of pytest-xdist ends: all leave out the same."""
    node.config.stash[_left_out] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if count := config.stash.get(_left_out, 0):
        terminalreporter.write_line(
            f"{count} tests deselected, and fewer examples of others: MILLSTREAM_DEPTH is {depth.DEPTH:g}. "
            "`make test-all` runs everything."
        )


@pytest.fixture(scope="module", autouse=True)
def _sockets_collected(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if foreign_clients.used_in(request.path):
        gc.collect()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run `async` tests in asyncio's loop."""
    return "asyncio"
