"""A broker shared by the tests of one package. Tests that stop one start their own `LogdProcess`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.support.logd_process import LogdProcess

_numbers = itertools.count()


@pytest.fixture(scope="session")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    """Run one broker for the whole run: use ``new_name`` for topics and groups."""
    with LogdProcess(tmp_path_factory.mktemp("logd")) as process:
        yield process


@pytest.fixture
def new_name() -> Callable[[str], str]:
    """Names no other test uses."""
    return lambda prefix="topic": f"{prefix}-{next(_numbers)}"
