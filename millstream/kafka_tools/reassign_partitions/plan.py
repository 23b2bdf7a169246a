"""The JSON of moves that `kafka-reassign-partitions` reads and prints, and the assignment it proposes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from kafka_client import BrokerNode, TopicPartition
from millstream.kafka_tools.java.java_errors import JavaError, admin_operation, command_failed
from millstream.kafka_tools.java.java_integers import integer_or_java_error
from millstream.kafka_tools.options.json_document import JsonValue, parse_json
from millstream.kafka_tools.options.json_file import read_file
from millstream.kafka_tools.reassign_partitions.folders import FolderMoves, Replica

T = TypeVar("T")

Assignment: TypeAlias = Mapping[TopicPartition, Sequence[int]]
ANY = "any"
"""The `log_dirs` entry of a replica whose log directory the broker chooses."""
VERSION = 1


def read_moves(file: str) -> tuple[list[tuple[TopicPartition, list[int]]], FolderMoves]:
    """Read the partitions of a --reassignment-json-file, and the moves into log directories.

    Raises JavaError if the file is invalid.
    """
    moves, folder_moves = [], {}
    for each in _listed(file, "partitions"):
        tp = TopicPartition(each.field("topic").text(), each.field("partition").integer())
        replicas = [one.integer() for one in each.field("replicas").elements()]
        log_dirs = each.get("log_dirs")
        folders = [ANY] * len(replicas) if log_dirs is None else [one.text() for one in log_dirs.elements()]
        if len(folders) != len(replicas):
            raise command_failed(
                f"Size of replicas list {replicas} is different from size of log dirs list "
                f"[{', '.join(folders)}] for partition {tp}"
            )
        for node, folder in zip(replicas, folders, strict=True):
            if folder != ANY:
                folder_moves[Replica(node, tp)] = folder
        moves.append((tp, replicas))
    return moves, folder_moves


def checked_moves(file: str) -> tuple[dict[TopicPartition, list[int]], FolderMoves]:
    """Read moves for `--execute`. Raises JavaError for none, or for duplicate partitions or replicas."""
    moves, folder_moves = read_moves(file)
    if not moves:
        raise command_failed("Partition reassignment list cannot be empty")
    if not all(replicas for _, replicas in moves):
        raise command_failed("Partition replica list cannot be empty")
    if twice := _twice(tp for tp, _ in moves):
        listed = ",".join(map(str, twice))
        raise command_failed(f"Partition reassignment contains duplicate topic partitions: {listed}")
    duplicates = {tp: _twice(replicas) for tp, replicas in moves}
    if any(duplicates.values()):
        listed = ". ".join(
            f"{tp} contains multiple entries for {','.join(map(str, each))}"
            for tp, each in duplicates.items()
            if each
        )
        raise command_failed(f"Partition replica lists may not contain duplicate entries: {listed}")
    return dict(moves), folder_moves


def read_topics(file: str) -> list[str]:
    """Read the topics of a --topics-to-move-json-file. Raises JavaError for duplicates."""
    topics = [each.field("topic").text() for each in _listed(file, "topics")]
    if twice := _twice(topics):
        raise command_failed(
            f"List of topics to reassign contains duplicate entries: [{', '.join(map(str, twice))}]"
        )
    return topics


def read_brokers(text: str) -> list[int]:
    """Parse the brokers of a --broker-list. Raises JavaError for duplicates."""
    brokers = [integer_or_java_error(each) for each in text.split(",")]
    if twice := _twice(brokers):
        listed = ", ".join(map(str, twice))
        raise command_failed(f"Broker list contains duplicate entries: [{listed}]")
    return brokers


def formatted(assignment: Assignment, places: FolderMoves = MappingProxyType({})) -> str:
    """Return the assignment as JSON for `--execute`, with the log directories in `places`."""
    partitions = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "replicas": list(replicas),
            "log_dirs": [places.get(Replica(node, tp), ANY) for node in replicas],
        }
        for tp, replicas in sorted(assignment.items())
    ]
    return json.dumps(
        {"version": VERSION, "partitions": partitions}, separators=(",", ":"), ensure_ascii=False
    )


def propose(current: Assignment, brokers: Sequence[BrokerNode], *, rack_aware: bool) -> Assignment:
    """Return an assignment spread evenly over brokers and racks. Each topic begins with a random broker."""
    racks: dict[str | None, list[int]] = {}
    for broker in brokers:
        racks.setdefault(broker.rack if rack_aware else None, []).append(broker.node_id)
    striped = [node for node in chain(*zip_longest(*racks.values())) if node is not None]
    proposed: dict[TopicPartition, list[int]] = {}
    for topic in sorted({tp.topic for tp in current}):
        parts = sorted(tp for tp in current if tp.topic == topic)
        factor = len(current[parts[0]])
        _check_room(factor, striped)
        first = random.randrange(len(striped))
        for at, tp in enumerate(parts):
            proposed[tp] = [striped[(first + at + n) % len(striped)] for n in range(factor)]
    return proposed


def _check_room(factor: int, brokers: Sequence[int]) -> None:
    invalid = "org.apache.kafka.common.errors.InvalidReplicationFactorException"
    if not brokers:
        raise JavaError(invalid, "All brokers are currently fenced.")
    if factor > len(brokers):
        raise JavaError(
            invalid,
            f"The target replication factor of {factor} cannot be reached because only {len(brokers)} "
            "broker(s) are registered.",
        )


def _listed(file: str, name: str) -> list[JsonValue]:
    """Return the list of that name in a JSON file. Raises JavaError unless its version is 1 or missing."""
    read = parse_json(read_file(file), "The input string is not a valid JSON")
    version_field = read.get("version")
    if version_field is not None and (version := version_field.integer()) != VERSION:
        raise admin_operation(f"Not supported version field value {version}")
    listed = read.get(name)
    return [] if listed is None else listed.elements()


def _twice(values: Iterable[T]) -> list[T]:
    listed = list(values)
    return [value for value in dict.fromkeys(listed) if listed.count(value) > 1]
