"""Which tests run together in one worker of pytest-xdist (`--dist loadscope`), and which groups begin first.

A file is a group: its module's and its package's brokers are started once. Spark's driver takes a core of its
own and half a gigabyte, so everything that starts one is one group; so is what shares an ensemble of
ZooKeeper. A file that would outlast all others is several. xdist hands groups out in the order of collection,
and what takes long has to begin early.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

TESTS = Path(__file__).parent.parent
SPARK = ("plugins/spark/", "millstream/demo/test_demo.py", "interop/test_any_kafka.py")
"""Tests that start Spark, by the beginnings of paths. They are one group, which takes longest."""
SPARK_GROUP = "spark"
ZOOKEEPER = ("logd/metadata/zookeeper/", "logd/broker/cluster/test_cluster.py")
"""Tests that share an ensemble of ZooKeeper, by the beginnings of paths."""
ZOOKEEPER_GROUP = "zookeeper"
SHARDS = {
    "faults/test_model.py": 4,
    "kafka_client/wire/test_messages.py": 4,
}
"""Files in several groups, each test by its name's checksum."""
APART = {"millstream/kafka_tools/test_transcripts.py": ("on_apache_kafka", "where_logd_has_none")}
"""Files of which the tests with such words in their names are a group of their own: they share brokers."""
SECONDS = {
    ZOOKEEPER_GROUP: 80,
    "interop/test_truncated_logs.py": 100,
    "millstream/test_records_exchange.py": 100,
    "millstream/kafka_tools/test_transcripts.py": 80,
    "faults/cluster/test_partitions.py": 250,
    "faults/cluster/test_hosts.py": 330,
    "faults/cluster/test_clients.py": 80,
    "faults/cluster/test_ensemble.py": 200,
    "faults/cluster/test_chaos.py": 160,
    "faults/cluster/test_kills.py": 140,
    "faults/cluster/test_tools.py": 110,
    "faults/cluster/test_full_disk.py": 80,
    "faults/cluster/test_growth.py": 50,
    "faults/cluster/test_throttled_moves.py": 30,
    "faults/cluster/test_broker_shutdown.py": 20,
    "faults/cluster/test_streams.py": 50,
    "faults/cluster/test_clock_jump.py": 40,
    "faults/cluster/test_coordinators.py": 80,
    "faults/test_model.py": 50,
    "kafka_client/test_session_histories.py": 50,
    "kafka_client/test_transaction_oracle.py": 50,
    "logd/storage/test_kafka_folders.py": 50,
    "faults/exactly_once/test_exactly_once.py": 50,
    "streams/runtime/test_live_rules.py": 55,
    "streams/runtime/test_interleavings.py": 40,
    "streams/runtime/commit/test_matching_kills.py": 20,
    "docs/test_cluster_page.py": 30,
    "docs/test_commands_run.py": 30,
    "faults/test_crash_points.py": 30,
    "interop/transactions/test_copying.py": 30,
    "interop/test_kafka_takes_over.py": 20,
    "logd/broker/cluster/test_secured_zookeeper.py": 20,
    "millstream/test_apache_kafka.py": 20,
    "interop/test_other_languages.py": 20,
    "kafka_client/test_transaction_histories.py": 20,
    "millstream/kafka_tools/test_exchange.py": 20,
    "millstream/test_records.py": 20,
    "mirror/test_late_batches.py": 20,
    "connect/integration/test_kills.py": 10,
    "docs/test_records_page.py": 10,
    "millstream/test_progress.py": 10,
    "connect/integration/test_standing_still.py": 10,
    "faults/test_frames.py": 10,
    "faults/test_kill.py": 10,
    "fuzz/test_decoders.py": 10,
    "interop/test_cleaners_agree.py": 10,
    "interop/test_compacted.py": 10,
    "interop/test_groups.py": 10,
    "interop/test_restart.py": 10,
    "interop/transactions/test_java.py": 10,
    "interop/transactions/test_semantics.py": 10,
    "logd/api_transactions/test_crashes.py": 10,
    "logd/broker/cluster/test_strays.py": 10,
    "logd/broker/test_broker_settings.py": 10,
    "logd/broker/test_compaction.py": 10,
    "logd/broker/test_journal_directory.py": 10,
    "logd/broker/test_log_dirs.py": 10,
    "logd/broker/test_log_dirs_moves.py": 10,
    "kafka_client/test_produce_lists.py": 10,
    "kafka_client/test_transaction_groups.py": 10,
    "kafka_client/test_transaction_kills.py": 10,
    "kafka_client/wire/test_messages.py": 10,
    "mirror/test_link.py": 10,
    "mirror/test_links.py": 10,
    "millstream/testing/test_cluster.py": 50,
    "millstream/testing/test_cluster_fixture.py": 30,
    "millstream/testing/test_faults.py": 10,
    "millstream/testing/test_plugin.py": 10,
    "millstream/commands/zookeeper/test_zookeeper.py": 10,
    "mirror/test_quarantine.py": 10,
    "streams/runtime/assignment/test_rebalance.py": 60,
    "streams/runtime/commit/test_exactly_once.py": 50,
    "streams/dsl/test_rules.py": 40,
    "faults/streams/test_random_kills.py": 30,
    "streams/differential/test_differential.py": 50,
    "streams/dsl/test_windows.py": 25,
    "streams/dsl/test_published.py": 15,
    "streams/runtime/assignment/test_instances.py": 20,
    "streams/runtime/commit/test_kills.py": 20,
    "connect/integration/test_worker.py": 5,
    "faults/test_batches.py": 5,
    "faults/test_power_loss.py": 5,
    "fuzz/test_socket.py": 5,
    "fuzz/test_targets.py": 5,
    "interop/test_faust.py": 5,
    "interop/test_round_trip.py": 5,
    "interop/test_truncation.py": 5,
    "logd/api/test_clients.py": 5,
    "logd/api_transactions/test_brokers.py": 5,
    "logd/api_transactions/test_clients.py": 5,
    "logd/broker/test_housekeeping.py": 5,
    "logd/broker/test_producer_ids.py": 5,
    "kafka_client/test_interop.py": 5,
    "logd/groups/test_histories.py": 5,
    "logd/groups/test_txn_histories.py": 5,
    "logd/server/test_process.py": 5,
    "logd/server/test_receive_memory.py": 5,
    "logd/server/test_sending.py": 5,
    "logd/storage/test_kafka_tools.py": 5,
    "logd/storage/test_transaction_history.py": 5,
    "docs/test_pytest_blocks.py": 5,
    "millstream/testing/test_broker.py": 5,
    "millstream/testing/test_cli.py": 5,
    "millstream/testing/test_clients.py": 5,
    "mirror/test_kill.py": 5,
    "plugins/files/test_files_sink.py": 5,
    "streams/runtime/test_application.py": 5,
}
"""How long groups take, roughly and on two cores, from five seconds on; those not listed come last."""


WAITING = (
    "faults/cluster/test_kills.py",
    "faults/cluster/test_tools.py",
    "interop/transactions/test_semantics.py",
    "interop/test_groups.py",
    "millstream/kafka_tools/test_transcripts.py",
    "mirror/test_link.py",
    "streams/runtime/test_application.py",
    "mirror/test_links.py",
    "logd/api/test_clients.py",
    "interop/test_round_trip.py",
    "millstream/testing/test_faults.py",
    "logd/api_groups/test_clients.py",
    "mirror/test_idle_partitions.py",
    "faults/test_frames.py",
    "mirror/test_quarantine.py",
    "interop/test_truncated_logs.py",
    "logd/server/test_sending.py",
    "connect/integration/test_kills.py",
    "interop/test_faust.py",
    "mirror/test_late_batches.py",
    "millstream/test_main.py",
    "millstream/commands/cluster/test_cli.py",
    "logd/server/test_receive_memory.py",
    "kafka_client/test_admin.py",
)
"""Groups that wait most of their time, longest first.

They begin early, beside Spark, which keeps two cores busy. Tests that can use both cores come behind Spark.
"""


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out whole groups. xdist's own `loadgroup` needs marks that its workers find, by a hook that has
    to come before theirs, and pytest 9.2 no longer has what they write them to.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


def in_order(items: list[pytest.Item]) -> None:
    """Bring tests into the order in which their groups begin; within a group they stay as they are."""
    groups = {item: group(item.nodeid) for item in items}
    items.sort(key=lambda item: (_turn(groups[item].partition("#")[0]), groups[item]))


def _turn(name: str) -> float:
    """Return the rank of a group: groups begin from the lowest rank on."""
    if name == SPARK_GROUP:
        return float("-inf")
    return WAITING.index(name) - 1e6 if name in WAITING else -SECONDS.get(name, 0)


def group(nodeid: str) -> str:
    """Return the name of a test's group, which is its file's path below `tests`."""
    file, _, name = nodeid.partition("::")
    path = file.removeprefix(f"{TESTS.name}/")
    if path.startswith(SPARK):
        return SPARK_GROUP
    if path.startswith(ZOOKEEPER):
        return ZOOKEEPER_GROUP
    if (shards := SHARDS.get(path)) is not None:
        return f"{path}#{zlib.crc32(name.encode()) % shards}"
    if any(words in name for words in APART.get(path, ())):
        return f"{path}#apart"
    return path
