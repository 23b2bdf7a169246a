"""Replicas as the command line has them: `1:2,2:3`, the brokers of each partition."""

from __future__ import annotations

from millstream.kafka_tools.java_errors import JavaError, number_format

TOOLS = "org.apache.kafka.tools"


def parse_replica_assignment(text: str) -> list[list[int]]:
    """The brokers of each partition, none for an empty text; JavaError where it does not hold together."""
    found: list[list[int]] = []
    for partition, brokers in enumerate(text.split(",") if text else []):
        replicas = [number_format(broker.strip()) for broker in brokers.split(":")]
        if twice := sorted({broker for broker in replicas if replicas.count(broker) > 1}):
            raise JavaError(
                f"{TOOLS}.AdminCommandFailedException",
                f"Partition replica lists may not contain duplicate entries: {','.join(map(str, twice))}",
            )
        found.append(replicas)
        if len(replicas) != len(found[0]):
            raise JavaError(
                f"{TOOLS}.AdminOperationException",
                f"Partition {partition} has different replication factor: {replicas}",
            )
    return found
