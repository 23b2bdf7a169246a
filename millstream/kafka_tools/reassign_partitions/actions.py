"""The actions of `kafka-reassign-partitions`: list, generate, execute, verify, cancel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka_client import OngoingReassignment, TopicPartition
from kafka_client.errors import KafkaError
from millstream.kafka_tools.java.java_errors import (
    COMMON,
    JavaError,
    admin_operation,
    command_failed,
    of_answer,
)
from millstream.kafka_tools.options.arguments import OptionValues
from millstream.kafka_tools.reassign_partitions import folders
from millstream.kafka_tools.reassign_partitions.folders import FolderMoves
from millstream.kafka_tools.reassign_partitions.plan import (
    Assignment,
    checked_moves,
    formatted,
    propose,
    read_brokers,
    read_moves,
    read_topics,
)
from millstream.kafka_tools.reassign_partitions.throttles import (
    clear_throttles,
    set_folders_throttle,
    set_throttle,
)
from millstream.terminal.session import Session

UNKNOWN = f"{COMMON}.errors.UnknownTopicOrPartitionException"
IS_UNDER_WAY = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this "
    "and create a new partition assignment in addition to the existing one. The --additional flag can also "
    "be used to change the throttle by resubmitting the current reassignment."
)
RUN_VERIFY = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle "
    "is removed."
)


TIMEOUT_MS = 10_000
"""How long to try to start moves between log directories, without --timeout."""


class Terse(Exception):
    """An error that ends the tool with its message on stdout, without a prefix."""


async def list_moves(session: Session, values: OptionValues) -> None:
    """Print the moves in progress."""
    moves = await session.admin.list_partition_reassignments()
    if not moves:
        print("No partition reassignments found.")
        return
    print("Current partition reassignments:")
    for tp, move in sorted(moves.items()):
        adding = f" adding: {_joined(move.adding)}." if move.adding else ""
        removing = f" removing: {_joined(move.removing)}." if move.removing else ""
        print(f"{tp}: replicas: {_joined(move.replicas)}.{adding}{removing}")


async def generate(session: Session, values: OptionValues) -> None:
    """Print a proposed assignment of the partitions of some topics."""
    requested = read_brokers(values.text("broker-list") or "")
    topics = read_topics(values.text("topics-to-move-json-file") or "")
    current = await _assignment(session, topics)
    cluster_brokers = (await session.admin.describe_cluster()).brokers
    brokers = [broker for broker in cluster_brokers if broker.node_id in requested]
    rack_aware = not values.has("disable-rack-aware")
    if rack_aware and any(b.rack for b in brokers) and not all(b.rack for b in brokers):
        raise admin_operation(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
    proposed = propose(current, brokers, rack_aware=rack_aware)
    places = await folders.current_places(session, current)
    print(f"Current partition replica assignment\n{formatted(current, places)}\n")
    print(f"Proposed partition reassignment configuration\n{formatted(proposed)}")


async def execute(session: Session, values: OptionValues) -> None:
    """Start moves."""
    proposed, folder_moves = checked_moves(values.text("reassignment-json-file") or "")
    under_way = await session.admin.list_partition_reassignments()
    if under_way and not values.has("additional"):
        raise Terse(IS_UNDER_WAY)
    broker_ids = {broker.node_id for broker in (await session.admin.describe_cluster()).brokers}
    targets = dict.fromkeys(node for replicas in proposed.values() for node in replicas)
    if unknown := [node for node in targets if node not in broker_ids]:
        raise command_failed(f"Unknown broker id {unknown[0]}")
    current = await _assignment_of(session, proposed)
    places = await folders.current_places(session, current)
    print(f"Current partition replica assignment\n\n{formatted(current, places)}\n")
    print("Save this to use as the --reassignment-json-file option during rollback")
    await _throttle(session, values, under_way, proposed, current, folder_moves)
    if values.has("disallow-replication-factor-change"):
        _check_factors(proposed, current)
    await _alter(session, proposed, "Error reassigning partition(s):")
    listed = ",".join(str(tp) for tp in sorted(proposed))
    print(f"Successfully started partition reassignment{_s(proposed)} for {listed}")
    if folder_moves:
        await _move_folders(session, values, folder_moves)


async def verify(session: Session, values: OptionValues) -> None:
    """Print the status of moves. Remove the throttles once all moves have ended."""
    moves, folder_moves = read_moves(values.text("reassignment-json-file") or "")
    under_way = await session.admin.list_partition_reassignments()
    topics = {tp.topic for tp, _ in moves}
    metadata = (await session.client.metadata(topics, refresh=True, allow_missing=True)).topics
    print("Status of partition reassignment:")
    for tp, target in sorted(moves):
        partition = metadata[tp.topic].partitions.get(tp.partition) if tp.topic in metadata else None
        current = list(partition.replicas) if partition is not None else []
        if tp in under_way:
            print(f"Reassignment of partition {tp} is still in progress.")
        elif current == target:
            print(f"Reassignment of partition {tp} is completed.")
        else:
            print(
                f"There is no active reassignment of partition {tp}, but replica set is {_joined(current)} "
                f"rather than {_joined(target)}."
            )
    statuses = (await folders.statuses(session, folder_moves)).values()
    print("\n".join(status.text for status in statuses))
    if (
        not under_way
        and all(status.has_ended for status in statuses)
        and not values.has("preserve-throttles")
    ):
        await clear_throttles(session, moves)


async def cancel(session: Session, values: OptionValues) -> None:
    """Cancel moves in progress."""
    moves, folder_moves = read_moves(values.text("reassignment-json-file") or "")
    ongoing = await session.admin.list_partition_reassignments([tp for tp, _ in moves])
    active = {tp: None for tp, move in ongoing.items() if move.adding or move.removing}
    if active:
        await _alter(session, active, f"Error cancelling partition reassignment{_s(active)} for:")
        listed = ",".join(str(tp) for tp in sorted(active))
        print(f"Successfully cancelled partition reassignment{_s(active)} for: {listed}")
    else:
        print("None of the specified partition reassignments are active.")
    found_moves = await folders.statuses(session, folder_moves)
    back = {at: status.moving_from for at, status in found_moves.items() if status.moving_from is not None}
    if back:
        await _move_folders(session, values, back)
    else:
        print("None of the specified partition moves are active.", end="")
    if not values.has("preserve-throttles"):
        await clear_throttles(session, moves)


async def _throttle(
    session: Session,
    values: OptionValues,
    under_way: Mapping[TopicPartition, OngoingReassignment],
    proposed: Assignment,
    current: Assignment,
    folder_moves: FolderMoves,
) -> None:
    rate, folders_rate = (
        rate if rate is not None and rate >= 0 else None  # a negative rate means no throttle
        for rate in (values.integer(each, 64) for each in ("throttle", "replica-alter-log-dirs-throttle"))
    )
    if rate is not None or folders_rate is not None:
        print(RUN_VERIFY)
    if rate is not None:
        await set_throttle(session, under_way, proposed, current, rate)
    if folders_rate is not None:
        await set_folders_throttle(session, {replica.broker for replica in folder_moves}, folders_rate)


async def _move_folders(session: Session, values: OptionValues, moves: FolderMoves) -> None:
    timeout_ms = values.integer("timeout", 64)
    waiting = await folders.start(session, moves, TIMEOUT_MS if timeout_ms is None else timeout_ms)
    if waiting:
        listed = ",".join(str(replica) for replica in sorted(waiting))
        raise Terse(f"Timed out before log directory move{_s(waiting)} could be started for: {listed}")


async def _alter(
    session: Session, moves: Mapping[TopicPartition, Sequence[int] | None], failure: str
) -> None:
    results = await session.admin.alter_partition_reassignments(moves)
    failed: dict[TopicPartition, KafkaError] = {
        tp: error for tp, error in sorted(results.items()) if error is not None
    }
    if failed:
        raise Terse("\n".join([failure, *(f"{tp}: {of_answer(error)}" for tp, error in failed.items())]))


def _check_factors(proposed: Assignment, current: Assignment) -> None:
    """Raise Terse if a replication factor changes. Brokers before Kafka 4.1 do not check it."""
    changed = [tp for tp in sorted(proposed) if len(proposed[tp]) != len(current[tp])]
    if changed:
        raise Terse(
            "Error reassigning partition(s):\n"
            + "\n".join(
                f"{tp}: The replication factor is changed from {len(current[tp])} to {len(proposed[tp])}"
                for tp in changed
            )
        )


async def _assignment(session: Session, topics: Iterable[str]) -> Assignment:
    """Return the replicas of the topics' partitions. Raises JavaError if a topic does not exist."""
    names = list(topics)
    metadata = (await session.client.metadata(names, refresh=True, allow_missing=True)).topics
    for topic in names:
        if topic not in metadata:
            raise JavaError(UNKNOWN, f"Topic {topic} not found.")
    return {
        TopicPartition(topic, number): list(partition.replicas)
        for topic in names
        for number, partition in metadata[topic].partitions.items()
    }


async def _assignment_of(session: Session, tps: Iterable[TopicPartition]) -> Assignment:
    requested = list(tps)
    assignment = await _assignment(session, dict.fromkeys(tp.topic for tp in requested))
    if missing := [str(tp) for tp in requested if tp not in assignment]:
        raise JavaError(UNKNOWN, f"Unable to find partition: {', '.join(missing)}")
    return {tp: assignment[tp] for tp in requested}


def _joined(nodes: Iterable[int]) -> str:
    return ",".join(map(str, nodes))


def _s(many: Mapping[Any, object]) -> str:
    return "" if len(many) == 1 else "s"
