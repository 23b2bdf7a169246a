"""One broker for all tests of foreign clients; tests that stop or damage one start their own."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.interop.clients.base import LIBRARIES, Client, load
from tests.support.logd_process import LogdProcess

_numbers = itertools.count()


@pytest.fixture(scope="session")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    """A broker; use ``new_name`` for topics and groups."""
    settings = {"group.min.session.timeout.ms": 500}
    with LogdProcess(tmp_path_factory.mktemp("interop"), settings) as process:
        yield process
    assert "Traceback" not in process.log


@pytest.fixture(scope="session", autouse=True)
def _aiokafka_loop() -> Iterator[None]:
    yield
    if (aio := sys.modules.get("tests.interop.clients.aio")) is not None:
        aio.stop()


@pytest.fixture
def new_name() -> Callable[[str], str]:
    """Names no other test uses."""
    return lambda prefix="topic": f"{prefix}-{next(_numbers)}"


@pytest.fixture(params=LIBRARIES)
def client(request: pytest.FixtureRequest) -> Client:
    """Every library in turn."""
    return load(request.param)
