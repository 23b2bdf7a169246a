"""The broker the client is tried against: logd, or any other by MILLSTREAM_TEST_BOOTSTRAP=host:port."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable

import pytest

from tests.support.shared_logd import logd

__all__ = ["logd"]


@pytest.fixture
def bootstrap(request: pytest.FixtureRequest) -> str:
    given = os.environ.get("MILLSTREAM_TEST_BOOTSTRAP")
    return given or str(request.getfixturevalue("logd").bootstrap)


@pytest.fixture
def new_name() -> Callable[[str], str]:
    """Names no other test uses, nor an earlier run against a broker that stays."""

    def make(prefix: str) -> str:
        return f"client-{prefix}-{uuid.uuid4().hex[:12]}"

    return make
