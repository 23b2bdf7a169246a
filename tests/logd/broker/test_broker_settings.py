"""Each broker setting changes what it says: looked at where it is set, and where it is not.

The settings stand on four brokers, none where it disturbs another; a fifth has none of them. Settings that
other tests are about are not here again: `TESTED_IN` names the tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.records import Codec
from logd.config import BROKER_SETTINGS, TOPIC_SETTINGS
from logd.storage.disk import PosixDisk
from logd.storage.preallocation import preallocate
from tests.logd.api.test_topic_configs import CASES as TOPIC_CASES
from tests.logd.broker.broker_settings import HOUR_MS, Broker, now_ms
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient

EVERYWHERE = {
    "log.cleaner.backoff.ms": 50,
    "log.cleaner.dedupe.buffer.size": 2_200_000,
    "log.retention.check.interval.ms": 50,
    "log.retention.ms": -1,
    "log.segment.bytes": 1_000_000,
    "millstream.flush.interval.ms": 50,
    "replica.alter.log.dirs.io.max.bytes.per.second": 1,
}
BESIDES = {
    "fine": {"log.cleaner.dedupe.buffer.size": 1 << 20},
    "slow": {"millstream.flush.interval.ms": HOUR_MS},
}
"""Settings that make effects visible: key memory for 2,184 keys, and no checkpoints that force flushes."""
CREATE_TIME = {"message.timestamp.type": "CreateTime"}
Look = Callable[[Broker], Any]
Check = Callable[[Any], bool]


class Case(NamedTuple):
    """`look` at the broker that has the setting finds what is `expected`, at the plain one something else.

    Where only waiting would tell that something else, `is_awaited`: the look waits for what is expected.
    """

    broker: str
    key: str
    value: object
    look: Look
    expected: Check
    is_awaited: bool = False


def equals(value: object) -> Check:
    return lambda measured: bool(measured == value)


def before_max(broker: Broker) -> int:
    return broker.appended(now_ms() - 48 * HOUR_MS, CREATE_TIME)[0]


def after_max(broker: Broker) -> int:
    return broker.appended(now_ms() + 2 * HOUR_MS, CREATE_TIME)[0]


def jitter(broker: Broker) -> int:
    return broker.segments(HOUR_MS, segment_ms=str(HOUR_MS))


OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"


def of_topic(name: str, key: str) -> Look:
    return lambda broker: broker.coordinated_config(name, key)


def partitions_of(name: str) -> Look:
    return lambda broker: broker.coordinated_partitions(name)


def joined(session_timeout_ms: int) -> Look:
    return lambda broker: broker.joined(session_timeout_ms)


CASES = (
    Case("fine", "broker.rack", "r9", Broker.rack, equals("r9")),
    Case("fine", "fetch.max.bytes", 2_500, Broker.batches_fetched, equals(2)),
    Case("fine", "group.max.size", 1, Broker.second_member, equals(ErrorCode.GROUP_MAX_SIZE_REACHED)),
    Case("fine", "log.cleaner.delete.retention.ms", 0, Broker.keeps_tombstones, equals(False)),
    Case(
        "fine",
        "log.cleaner.io.buffer.load.factor",
        0.05,
        Broker.rounds_for_many_keys,
        lambda n: n > 2,
    ),
    Case("fine", "log.cleaner.io.buffer.size", 4_096, Broker.cleaner_writes, lambda n: n > 50),
    Case("fine", "log.cleaner.max.compaction.lag.ms", 1_000, Broker.is_compacted_in_time, bool, True),
    Case("slow", "log.flush.start.offset.checkpoint.interval.ms", 50, Broker.start_is_noted, bool, True),
    Case(
        "fine",
        "log.message.timestamp.before.max.ms",
        24 * HOUR_MS,
        before_max,
        equals(ErrorCode.INVALID_TIMESTAMP),
    ),
    Case("fine", "log.preallocate", "true", Broker.disk_bytes, lambda n: n >= 1_000_000),
    Case("fine", "log.roll.jitter.ms", HOUR_MS, jitter, equals(2)),
    Case("fine", "log.roll.ms", HOUR_MS, lambda broker: broker.segments(HOUR_MS + 1), equals(2)),
    Case("fine", "max.connections", 20, Broker.served, lambda n: n < 24),
    Case("fine", "socket.receive.buffer.bytes", 4_096, Broker.taken_unread, lambda n: n < 50_000),
    Case(
        "coarse", "delete.topic.enable", "false", Broker.deletion, equals(ErrorCode.TOPIC_DELETION_DISABLED)
    ),
    Case(
        "coarse", "log.cleaner.min.cleanable.ratio", 0.01, Broker.is_compacted_when_hardly_dirty, bool, True
    ),
    Case(
        "coarse",
        "log.cleaner.io.max.bytes.per.second",
        200_000,
        Broker.cleaning_seconds,
        lambda n: n > 1,
        True,
    ),
    Case("coarse", "log.cleaner.threads", 2, Broker.cleaners_at_once, equals(2)),
    Case("coarse", "log.index.size.max.bytes", 16, Broker.index_segments, lambda n: n > 1),
    Case("coarse", "log.message.timestamp.after.max.ms", 9 * HOUR_MS, after_max, equals(ErrorCode.NONE)),
    Case(
        "coarse",
        "log.message.timestamp.type",
        "LogAppendTime",
        lambda broker: broker.appended(1),
        equals((ErrorCode.NONE, True)),
    ),
    Case("coarse", "log.retention.bytes", 10_000, Broker.is_cut_by_size, bool),
    Case("coarse", "log.roll.hours", 2, lambda broker: broker.segments(2 * HOUR_MS + 1), equals(2)),
    Case("coarse", "log.roll.jitter.hours", 1, jitter, equals(2)),
    Case("coarse", "num.replica.alter.log.dirs.threads", 1, Broker.moving_at_once, equals(1), True),
    Case(
        "coarse",
        "offset.metadata.max.bytes",
        10,
        Broker.long_metadata,
        equals(ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ),
    Case("coarse", "socket.send.buffer.bytes", 4_096, Broker.given_unread, lambda n: n < 50_000),
    Case(
        "coarse",
        "transaction.max.timeout.ms",
        20_000,
        Broker.long_transaction,
        equals(ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ),
    Case(
        "late",
        "group.max.session.timeout.ms",
        40_000,
        joined(40_001),
        equals(ErrorCode.INVALID_SESSION_TIMEOUT),
    ),
    Case(
        "late",
        "group.min.session.timeout.ms",
        8_000,
        joined(7_999),
        equals(ErrorCode.INVALID_SESSION_TIMEOUT),
    ),
    Case(
        "late",
        "log.cleaner.dedupe.buffer.size",
        1 << 20,
        lambda broker: broker.rounds_for_many_keys(45_000),
        equals(2),
    ),
    Case("late", "log.cleaner.min.compaction.lag.ms", HOUR_MS, Broker.is_compacted_when_young, equals(False)),
    Case("late", "num.partitions", 3, Broker.partitions_by_default, equals(3)),
    Case("late", "offsets.topic.compression.codec", 3, Broker.offsets_codec, equals(Codec.LZ4)),
    Case("late", "offsets.topic.num.partitions", 3, partitions_of(OFFSETS), equals(3)),
    Case("late", "offsets.topic.segment.bytes", 9_000, of_topic(OFFSETS, "segment.bytes"), equals("9000")),
    Case("late", "socket.listen.backlog.size", 5, Broker.taken_unaccepted, equals(6)),
    Case(
        "late", "transaction.state.log.min.isr", 2, of_topic(TRANSACTIONS, "min.insync.replicas"), equals("2")
    ),
    Case("late", "transaction.state.log.num.partitions", 3, partitions_of(TRANSACTIONS), equals(3)),
    Case(
        "late",
        "transaction.state.log.segment.bytes",
        9_000,
        of_topic(TRANSACTIONS, "segment.bytes"),
        equals("9000"),
    ),
)


class Brokers:
    """The brokers of the tests, each started at its first use."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self.named = cache(self._start)

    def _start(self, name: str) -> Broker:
        folder = self._folder / name
        own = {case.key: case.value for case in CASES if case.broker == name}
        own |= BESIDES.get(name, {})
        folders = {"log.dirs": f"{folder / 'a'},{folder / 'b'}"}
        logd = self._stack.enter_context(LogdProcess(folder, {**folders, **EVERYWHERE, **own}))
        return Broker(logd, self._stack.enter_context(RawClient(logd.port)))


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    with ExitStack() as stack:
        yield Brokers(tmp_path_factory.mktemp("settings"), stack)


@pytest.fixture(autouse=True)
def can_preallocate(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if "preallocate" in request.node.name:
        file = PosixDisk().open(tmp_path / "probe")
        preallocate(file, 100_000)
        if (tmp_path / "probe").stat().st_blocks == 0:
            pytest.skip("this file system does not preallocate")


@deep
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.key}={case.value}")
def test_each_setting_changes_what_it_says(brokers: Brokers, case: Case) -> None:
    value = case.look(brokers.named(case.broker))
    assert case.expected(value), value
    if not case.is_awaited:
        value = case.look(brokers.named("plain"))
        assert not case.expected(value), f"{value}, also without the setting"


TESTED_IN = {
    "logd/broker/cluster/test_secured_brokers.py::test_brokers_choose_a_listener_by_its_protocol": [
        "security.inter.broker.protocol"
    ],
    "logd/broker/cluster/test_secured_brokers.py::test_three_brokers_and_an_election": [
        "sasl.mechanism.inter.broker.protocol"
    ],
    "logd/authorization/test_acls.py::test_acls_survive_a_crash": ["authorizer.class.name", "super.users"],
    "logd/authorization/test_acls.py::test_everyone_where_no_acl_is": ["allow.everyone.if.no.acl.found"],
    "logd/server/test_http_listener.py::test_a_process_serves_metrics_and_probes": [
        "millstream.http.listener"
    ],
    "faults/cluster/test_coordinators.py::test_a_group_goes_on": ["offsets.topic.replication.factor"],
    "faults/cluster/test_coordinators.py::test_transactions_are_whole": [
        "transaction.state.log.replication.factor"
    ],
    "faults/cluster/test_partitions.py::test_two_do_not_reach_each_other": ["advertised.listeners"],
    "faults/cluster/test_streams.py::test_sums_are_exact": ["default.replication.factor"],
    "faults/test_broker_kill_and_power_loss.py::test_what_is_read_after_a_kill_outlasts_a_power_loss": [
        "log.flush.interval.messages"
    ],
    "faults/test_frames.py::test_lengths_out_of_bounds": ["socket.request.max.bytes"],
    "logd/api/test_admin_apis.py::test_pages_of_partitions": ["max.request.partition.size.limit"],
    "logd/api/test_fetch_sessions.py::test_more_clients_than_slots": [
        "max.incremental.fetch.session.cache.slots"
    ],
    "logd/api_transactions/test_brokers.py::test_an_id_expires": [
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        "transactional.id.expiration.ms",
    ],
    "logd/api_transactions/test_brokers.py::test_without_verification_a_batch_may_open_a_transaction": [
        "transaction.partition.verification.enable"
    ],
    "logd/broker/cluster/test_closest.py::test_the_leader_serves_unless_another_rack_is_closer": [
        "replica.selector.class"
    ],
    "logd/broker/cluster/test_handing_over.py::test_answers_are_not_waited_for_without_end": [
        "controlled.shutdown.retry.backoff.ms"
    ],
    "logd/broker/cluster/test_replication.py::test_one_that_stays_behind_leaves_and_comes_back": [
        "replica.lag.time.max.ms"
    ],
    "logd/broker/cluster/test_settings.py::test_brokers_talk_by_the_listener_that_is_named": [
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
    ],
    "logd/broker/cluster/test_settings.py::test_fetchers_and_the_controller_go_by_kafkas_keys": [
        "replica.fetch.backoff.ms",
        "replica.fetch.max.bytes",
        "replica.fetch.min.bytes",
        "replica.fetch.response.max.bytes",
        "replica.fetch.wait.max.ms",
        "replica.socket.timeout.ms",
    ],
    "logd/broker/cluster/test_settings.py::test_leaders_are_given_back_to_preferred_replicas": [
        "leader.imbalance.check.interval.seconds",
        "leader.imbalance.per.broker.percentage",
    ],
    "logd/broker/cluster/test_settings.py::test_leaders_stay_where_they_are_not_to_be_given_back": [
        "auto.leader.rebalance.enable"
    ],
    "logd/broker/cluster/test_settings.py::test_unclean_elections_are_allowed_while_running": [
        "unclean.leader.election.enable"
    ],
    "logd/broker/cluster/test_shutdown.py::test_nothing_is_handed_over_where_that_is_set": [
        "controlled.shutdown.enable",
        "controlled.shutdown.max.retries",
    ],
    "logd/broker/cluster/test_throttles.py::test_a_follower_asks_for_less": [
        "follower.replication.throttled.rate"
    ],
    "logd/broker/cluster/test_throttles.py::test_a_leader_gives_less": ["leader.replication.throttled.rate"],
    "logd/broker/test_housekeeping.py::test_after_a_kill_only_what_came_after_the_last_flush_is_read_again": [
        "millstream.flush.interval.ms"
    ],
    "logd/broker/test_housekeeping.py::test_old_records_go_by_time_and_what_is_kept_forever_stays": [
        "log.retention.check.interval.ms"
    ],
    "logd/broker/test_journal_directory.py::test_a_lost_journal_is_begun_anew_only_when_told_so": [
        "millstream.adopt.log.dirs"
    ],
    "logd/broker/test_leadership.py::test_who_waits_when_it_resigns_is_sent_elsewhere": [
        "group.initial.rebalance.delay.ms"
    ],
    "logd/broker/test_log_dirs.py::test_new_partitions_go_where_fewest_are": ["log.dirs"],
    "logd/broker/test_log_dirs_moves.py::test_a_restart_in_the_middle_begins_again": [
        "replica.alter.log.dirs.io.max.bytes.per.second"
    ],
    "logd/broker/test_many_partitions.py"
    "::test_partitions_in_use_share_few_descriptors_and_idle_ones_have_none": [
        "millstream.open.files.idle.ms",
        "millstream.open.files.max",
    ],
    "logd/broker/test_many_partitions.py::test_so_many_bytes_are_flushed_before_their_time": [
        "millstream.flush.interval.bytes"
    ],
    "logd/broker/test_round_settings.py::test_a_silent_producer_is_forgotten_in_time": [
        "producer.id.expiration.ms"
    ],
    "logd/broker/test_round_settings.py::test_committed_offsets_are_kept_so_long": [
        "offsets.retention.minutes"
    ],
    "logd/broker/test_round_settings.py::test_how_often_a_cleaner_looks": [
        "log.cleaner.backoff.ms",
        "log.cleaner.enable",
    ],
    "logd/broker/test_round_settings.py::test_records_are_forced_to_the_disk_in_time": [
        "log.flush.interval.ms",
        "log.flush.scheduler.interval.ms",
    ],
    "logd/broker/test_round_settings.py::test_so_many_jobs_run_at_one_time": ["background.threads"],
    "logd/broker/test_rounds.py::test_housekeeping_goes_on": ["log.flush.offset.checkpoint.interval.ms"],
    "logd/broker/test_rounds.py::test_offsets_go_on_to_expire": ["offsets.retention.check.interval.ms"],
    "logd/broker/test_rounds.py::test_transactions_go_on_to_time_out": [
        "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    ],
    "logd/broker/test_truncation.py"
    "::test_high_watermarks_are_written_by_the_clock_where_there_are_several_replicas": [
        "replica.high.watermark.checkpoint.interval.ms"
    ],
    "logd/broker/cluster/test_replication.py::test_min_insync_replicas": ["min.insync.replicas"],
    "logd/config/test_load.py::test_stock_kraft_properties_are_taken": ["controller.listener.names"],
    "logd/config/test_settings.py::test_the_finest_unit_of_retention_wins": [
        "log.retention.hours",
        "log.retention.minutes",
    ],
    "logd/server/test_process.py::test_one_line_when_ready": ["node.id"],
    "logd/server/test_receive_memory.py::test_what_is_half_received_is_bounded": ["queued.max.request.bytes"],
    "logd/server/test_sending.py::test_a_response_larger_than_every_buffer_arrives_whole": [
        "millstream.fetch.send"
    ],
    "logd/server/test_sending.py::test_an_idle_connection_is_closed": ["connections.max.idle.ms"],
    "logd/server/test_connection_quotas.py::test_new_connections_wait_for_their_second": [
        "max.connection.creation.rate"
    ],
    "logd/server/test_connection_quotas.py::test_an_address_has_a_limit_of_its_own": [
        "max.connections.per.ip.overrides"
    ],
    "logd/server/test_sending.py::test_too_many_connections": ["max.connections.per.ip"],
    "millstream/commands/broker/test_cli.py::test_it_takes_no_orders_unless_it_is_told_to": [
        "millstream.remote.shutdown.enable"
    ],
    "millstream/testing/test_broker.py::test_settings_hold": ["auto.create.topics.enable"],
    "logd/server/test_secured_listeners.py::test_a_failed_login_is_answered_after_the_delay": [
        "connection.failed.authentication.delay.ms"
    ],
    "logd/server/test_secured_listeners.py::test_a_session_lasts_as_long_as_the_setting_says": [
        "connections.max.reauth.ms"
    ],
}
"""Settings without a case here, by the test that fails if they have no effect."""


def test_no_setting_is_without_a_test() -> None:
    """Settings without a test must be documented as without effect.

    Defaults of topic settings have their cases in `test_topic_configs`.
    """
    by_topics = {TOPIC_SETTINGS[case.key].broker_keys[0] for case in TOPIC_CASES}
    elsewhere = [key for keys in TESTED_IN.values() for key in keys]
    tested = [*{case.key for case in CASES}, *elsewhere]
    assert sorted(tested) == sorted(set(tested)), "each once"
    effective = {key for key, setting in BROKER_SETTINGS.items() if "ithout effect" not in setting.doc}
    assert effective - by_topics == set(tested) - by_topics


@pytest.mark.parametrize("test", TESTED_IN)
def test_what_is_said_to_test_a_setting_is_there(test: str) -> None:
    file, _, name = test.partition("::")
    text = (Path(__file__).parents[2] / file).read_text()
    assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE)
