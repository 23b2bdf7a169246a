"""One broker for all tests of foreign clients; tests that stop or damage one start their own."""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """kafka-python and aiokafka leave sockets of broken connections to the garbage collector."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))


@pytest.fixture(scope="module", autouse=True)
def _collected() -> Iterator[None]:
    """What a module's tests left behind is collected here, where nobody minds, and not in other tests."""
    yield
    gc.collect()


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
