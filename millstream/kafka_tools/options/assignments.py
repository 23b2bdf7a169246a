"""Replicas as the command line has them: `1:2,2:3`, the brokers of each partition."""

from __future__ import annotations

from millstream.kafka_tools.java.java_errors import admin_operation, command_failed
from millstream.kafka_tools.java.java_integers import integer_or_java_error


def parse_replica_assignment(text: str) -> list[list[int]]:
    """Return the brokers of each partition.

    Raises JavaError for a repeated broker, or replica counts that differ.
    """
    assignment: list[list[int]] = []
    for partition, brokers in enumerate(text.split(",") if text else []):
        replicas = [integer_or_java_error(broker.strip()) for broker in brokers.split(":")]
        if twice := sorted({broker for broker in replicas if replicas.count(broker) > 1}):
            raise command_failed(
                f"Partition replica lists may not contain duplicate entries: {','.join(map(str, twice))}",
            )
        assignment.append(replicas)
        if len(replicas) != len(assignment[0]):
            raise admin_operation(
                f"Partition {partition} has different replication factor: {replicas}",
            )
    return assignment
