"""Search the output of all brokers that `millstream.testing` starts as processes for tracebacks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from millstream.testing.child_process import ChildProcess
from tests.support.tracebacks import tracebacks


@pytest.fixture(scope="package")
def _tracebacks() -> Iterator[list[str]]:
    """Collect the tracebacks of all processes that have ended."""
    collected: list[str] = []
    end = ChildProcess.end

    def ending(self: ChildProcess) -> None:
        end(self)
        collected.extend(whole for _, whole in tracebacks(self.log))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChildProcess, "end", ending)
        yield collected
    assert not collected, collected[0]


@pytest.fixture(autouse=True)
def _no_tracebacks(_tracebacks: list[str]) -> Iterator[None]:
    """Fail the test that ends a process with a traceback."""
    yield
    tracebacks_of_test = _tracebacks[:]
    _tracebacks.clear()
    assert not tracebacks_of_test, tracebacks_of_test[0]
