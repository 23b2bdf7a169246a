"""The health of a worker of a group, as Kafka's testBrokerCoordinator asks it."""

from types import SimpleNamespace

import pytest

from connect.distributed.service import DistributedService


@pytest.mark.parametrize(
    ("assignment", "generation", "is_current", "health"),
    [
        (None, -1, True, "starting"),
        (None, -1, False, "starting"),
        ("some", 3, True, "healthy"),
        ("some", 3, False, "unhealthy"),
        (None, 3, False, "unhealthy"),
        (None, 3, True, "starting"),
    ],
)
def test_a_worker_whose_coordinator_is_silent_is_unhealthy(assignment, generation, is_current, health):
    group = SimpleNamespace(assignment=assignment, generation=generation, is_current=is_current)
    lost = SimpleNamespace(problem=lambda: None)
    worker = SimpleNamespace(
        config=None, herder=None, configs=None, loggers=None, failure=None, group=group, lost_configs=lost
    )
    state, message = DistributedService(worker).health()
    assert state == health
    if health == "unhealthy":
        assert message.startswith("Worker was unable to handle this request and may be unable to handle")
