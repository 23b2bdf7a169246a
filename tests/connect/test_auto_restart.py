"""AutoRestart: a failed task is started again a few times, each time later."""

import pytest

from connect.errors import ConfigError
from connect.runtime.auto_restart import AutoRestart, RestartPolicy

POLICY = RestartPolicy(restarts_max=3, backoff_ms=1000, backoff_max_ms=3000, reset_ms=60_000)


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_restarts_come_later_each_time_and_end(clock):
    restart = AutoRestart(POLICY, clock=clock)
    assert restart.report() == {}
    for count, delay in enumerate((1.0, 2.0, 3.0)):
        assert restart.note_failure() == delay
        expected = {"restarts": count, "restarts_max": 3, "next_restart_ms": int(delay * 1000)}
        assert restart.report() == {"auto_restart": expected}
        clock.now += delay - 0.5
        assert not restart.is_due
        assert restart.note_failure() == 0.5, "the same failure"
        clock.now += 0.5
        assert restart.is_due
        restart.restarted()
        assert not restart.is_due
    assert restart.note_failure() is None
    clock.now += 1e9
    assert not restart.is_due
    assert restart.report() == {"auto_restart": {"restarts": 3, "restarts_max": 3}}


def test_a_task_that_ran_long_has_all_restarts_again(clock):
    restart = AutoRestart(POLICY, clock=clock)
    for _ in range(3):
        restart.note_failure()
        restart.restarted()
    clock.now += 60
    assert restart.note_failure() == 1.0


def test_without_restarts_a_failure_stays(clock):
    restart = AutoRestart(RestartPolicy(restarts_max=0), clock=clock)
    assert restart.note_failure() is None
    assert restart.report() == {"auto_restart": {"restarts": 0, "restarts_max": 0}}


def test_the_policy_comes_from_the_connectors_config():
    config = {"errors.restart.max": "7", "errors.restart.backoff.ms": "5"}
    assert RestartPolicy.of(config) == RestartPolicy(restarts_max=7, backoff_ms=5)
    assert RestartPolicy.of({}) == RestartPolicy()
    with pytest.raises(ConfigError, match=r"errors\.restart\.max=-1"):
        RestartPolicy.of({"errors.restart.max": "-1"})
