"""What the brokers say that `millstream.testing` starts as processes is searched for tracebacks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from millstream.testing.child_process import ChildProcess
from tests.support.tracebacks import tracebacks


@pytest.fixture(scope="package")
def _found() -> Iterator[list[str]]:
    """The tracebacks of all that has ended so far."""
    found: list[str] = []
    end = ChildProcess.end

    def ending(self: ChildProcess) -> None:
        end(self)
        found.extend(whole for _, whole in tracebacks(self.log))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChildProcess, "end", ending)
        yield found
    assert not found, found[0]


@pytest.fixture(autouse=True)
def _no_tracebacks(_found: list[str]) -> Iterator[None]:
    """Whoever ends a process that has said one fails."""
    yield
    told = _found[:]
    _found.clear()
    assert not told, told[0]
