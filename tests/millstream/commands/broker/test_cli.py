"""`millstream broker` against one broker; against three in tests/faults/cluster/test_broker_shutdown.py."""

from __future__ import annotations

import json
from pathlib import Path

from kafka_client.errors import ErrorCode
from kafka_client.wire.private.broker_shutdown import BrokerShutdownRequest
from logd.storage.names import CLEAN_SHUTDOWN
from millstream.terminal.status import Status
from tests.millstream.invoking import NOBODY, On
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient

ENABLED = {"millstream.remote.shutdown.enable": "true"}


def test_it_takes_no_orders_unless_it_is_told_to(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, {"broker.rack": "r1", "node.id": 7}) as logd:
        on = On(logd.bootstrap)
        on.done("topic", "create", "t", "--partitions", 3)
        assert on.rows("broker", "list") == [
            {
                "id": 7,
                "host": "127.0.0.1",
                "port": logd.port,
                "rack": "r1",
                "controller": True,
                "partitions_led": 3,
            }
        ]
        for more in (("--yes", "--force"), ("--dry-run",)):
            refused = on("broker", "shutdown", 7, *more)
            assert refused.exit_code == Status.NOT_ALLOWED
            assert "start it with millstream.remote.shutdown.enable=true" in refused.stderr
        unknown = on("broker", "shutdown", 7, 8, 9, "--yes")
        assert unknown.exit_code == Status.NOT_FOUND
        assert "there is no broker 8, 9: the cluster has 7" in unknown.stderr
        set_ = on("config", "alter", "broker", 7, "millstream.remote.shutdown.enable=true")
        assert set_.exit_code != Status.OK
        with RawClient(logd.port) as client:
            answer = client.request(BrokerShutdownRequest(broker_id=7), 0)
            assert answer.error_code == ErrorCode.POLICY_VIOLATION
            assert answer.error_message == "broker 7 has millstream.remote.shutdown.enable=false"
        assert logd.stop() == 0


def test_the_last_one_goes(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, ENABLED) as logd:
        on = On(logd.bootstrap)
        on.done("topic", "create", "t", "--partitions", 2)
        with RawClient(logd.port) as client:
            answer = client.request(BrokerShutdownRequest(broker_id=2), 0)
            assert answer.error_code == ErrorCode.INVALID_REQUEST
            assert answer.error_message == "this is broker 1, not broker 2"
        (row,) = (
            json.loads(line)
            for line in on("broker", "shutdown", 1, "--dry-run", "-o", "jsonl").stdout.splitlines()
        )
        assert row == {"broker": 1, "partitions_led": 2, "result": "would stop", "error": None}
        for more in (("--yes",), ("--dry-run",)):
            refused = on("broker", "shutdown", 1, *more)
            assert refused.exit_code == Status.UNHEALTHY
            assert "it would leave 2 partitions without a leader (t-0, t-1)" in refused.stderr
        forced = on("broker", "shutdown", 1, "--force")
        assert forced.exit_code == Status.FAILED
        assert "it leaves 2 partitions without a leader (t-0, t-1)\n" in forced.stderr
        assert "Shut down broker 1? Nobody is here to be asked: give --yes." in forced.stderr
        on.done("topic", "delete", "t", "--yes")
        ended = on.done("broker", "shutdown", 1, 1, "--yes", "-o", "jsonl")
        assert json.loads(ended.stdout) == {
            "broker": 1,
            "partitions_led": 0,
            "result": "stopped",
            "error": None,
        }
        assert "broker 1 was the last one" in ended.stderr
        assert logd.wait() == 0
        assert (tmp_path / "data" / CLEAN_SHUTDOWN).exists()
        assert "User:ANONYMOUS at 127.0.0.1 asks this broker to stop" in logd.log


def test_what_cannot_be_read_is_told_without_a_cluster() -> None:
    assert NOBODY("broker", "shutdown").exit_code == Status.USAGE
    assert NOBODY("broker", "shutdown", "one").exit_code == Status.USAGE
