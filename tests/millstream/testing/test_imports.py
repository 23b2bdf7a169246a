"""The imports of a broker before it is ready: few in tests, those of its requests in a daemon."""

from __future__ import annotations

import subprocess
import sys

from kafka_client.wire import fetch, produce
from logd.api import table

OURS_MAX = 138
"""Modules of ours when a broker in the test's own process is ready: each costs a fifth of a millisecond."""
LATER = (
    "confluent_kafka",
    "cramjam",
    "msgspec",
    "shutil",
    "tempfile",
    "uuid",
    "uvloop",
    "connect",
    "streams",
    "logd.api.dispatch.decoded",
    "logd.broker.background.cleaner_process",
    "logd.broker.cluster",
    "logd.broker.groups.partition",
    "logd.broker.partition.partition",
    "logd.broker.transactions.partition",
    "logd.broker.transactions.remote_admission",
    "kafka_client.cluster",
    "kafka_client.fetcher",
    "kafka_client.producer",
    "logd.groups",
    "logd.metadata.controller",
    "logd.metadata.zookeeper",
    "kafka_client.records.compression",
    "logd.replication.leader",
    "logd.storage.cleaner",
    "logd.storage.log.loader",
    "logd.transactions.shard",
    "kafka_client.wire",
)
"""Rooms that the first topic, request, group or transaction opens."""

_READY = f"""
import sys
before = set(sys.modules)
from millstream.testing import Broker
with Broker(in_process=True):
    found = set(sys.modules) - before
too_early = sorted(name for name in {LATER} if name in found)
assert not too_early, f"imported before the broker is ready: {{too_early}}"
ours = sorted(name for name in found if name.split(".")[0] in ("kafka_client", "logd", "millstream"))
assert len(ours) <= {OURS_MAX}, f"{{len(ours)}} modules of ours, not {OURS_MAX}: {{ours}}"
"""

_SERVES = """
import sys
from logd.ahead import import_ahead
from millstream.testing import Broker
import_ahead()
with Broker(in_process=True) as broker:
    before = set(sys.modules)
    broker.topic("orders", 2)
    broker.produce("orders", ["a"])
    broker.records("orders")
    seldom = ("logd.api.", "logd.metadata.controller", "kafka_client.wire.messages.")
    clients = (
        "kafka_client.admin",
        "kafka_client.cluster",
        "kafka_client.fetcher",
        "kafka_client.group",
        "kafka_client.producer",
        "kafka_client.security",
        "kafka_client.metrics.windowed",
        "kafka_client.records.partitioning",
        "kafka_client.wire.fetched",
        "kafka_client.wire.private",
    )
    late = sorted(
        name for name in set(sys.modules) - before
        if name.startswith(("kafka_client.", "logd.")) and not name.startswith(seldom + clients)
    )
assert not late, f"a daemon imports these for its first clients, see logd/ahead.py: {late}"
"""


def _run(script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_broker_is_ready_before_its_rooms_are_opened() -> None:
    _run(_READY)


def test_a_daemon_imports_nothing_for_topics_and_records() -> None:
    _run(_SERVES)


def test_flexible_versions_are_those_of_the_messages() -> None:
    """Compare the copies, which are used before the messages are imported."""
    assert (table.FLEXIBLE_PRODUCE, table.FLEXIBLE_FETCH) == (produce.FLEXIBLE, fetch.FLEXIBLE)
