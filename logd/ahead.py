"""Imports done before the daemon serves, so that no request waits for them.

A broker of tests has to be ready soon. It imports each module when it first needs it: with the first topic,
the first request that is a message, the first transaction, or the first log to be compacted or moved. Modules
that only some brokers need (groups, most APIs, the controller) are imported at first use by the daemon, too.
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
    "kafka_client.acl",
    "kafka_client.acl_filter",
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
