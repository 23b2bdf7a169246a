"""Fixtures: a broker with an authorizer, shared by the tests here, and clients that have logged in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.support.logd_process import LogdProcess
from tests.support.logged_in import ROOT, LoggedInClient, settings_with_acls


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path_factory.mktemp("acls"), settings_with_acls()) as logd:
        with LoggedInClient(logd.port, ROOT) as client:
            for key_type in (0, 1):  # the coordinators' topics, which the first request for one creates
                client.request(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["k"]), 4)
        yield logd


@pytest.fixture
def root(broker: LogdProcess) -> Iterator[LoggedInClient]:
    with LoggedInClient(broker.port, ROOT) as client:
        yield client
        client.forget()


@pytest.fixture
def alice(broker: LogdProcess) -> Iterator[LoggedInClient]:
    with LoggedInClient(broker.port, "alice") as client:
        yield client
