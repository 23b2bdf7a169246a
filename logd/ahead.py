"""What the daemon imports before it serves, so that no request waits for it.

A broker of tests is to be ready soon, and imports each of these when it is first needed: with the first
topic, the first request that is a message, the first transaction, the first log to be compacted or moved.
What only some brokers ever need (groups, most APIs, the controller) the daemon imports at first use, too.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

MODULES: Final = (
    "logd.api.dispatch.decoded",
    "logd.api.fetch.fetch",
    "logd.api.produce.produce",
    "logd.broker.background.cleaner_process",
    "logd.broker.partition.partition",
    "logd.broker.transactions.log",
    "logd.broker.transactions.marker_queues",
    "logd.broker.transactions.partition",
    "logd.broker.transactions.remote_admission",
    "logd.metadata.shared_images",
    "kafka_client.records.control",
    "logd.storage.log.compaction",
    "logd.storage.future_log",
    "logd.storage.log.loader",
    "logd.transactions.shard",
    "kafka_client.wire",
)


def import_ahead() -> None:
    """Import all of it; takes some 40 ms."""
    for name in MODULES:
        import_module(name)
