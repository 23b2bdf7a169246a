"""The table of Kafka's tools, for `millstream.main`, which imports a tool once it is asked for."""

from __future__ import annotations

from typing import NamedTuple


class KafkaTool(NamedTuple):
    """A tool that is a subcommand of `millstream`."""

    module: str
    """Below `millstream.kafka_tools`; it has an `app` made by `running.tool`."""
    help: str


KAFKA_TOOLS = {
    "kafka-topics": KafkaTool("topics.cli", "Create, delete, describe, or change a topic."),
    "kafka-console-producer": KafkaTool("console.console_producer", "Write lines of stdin to a topic."),
    "kafka-console-consumer": KafkaTool("console.console_consumer", "Print records of topics."),
    "kafka-producer-perf-test": KafkaTool(
        "performance.producer_performance", "Measure how fast records are written."
    ),
    "kafka-consumer-perf-test": KafkaTool(
        "performance.consumer_performance", "Measure how fast records are read."
    ),
    "kafka-broker-api-versions": KafkaTool("broker_api_versions", "The versions of each API of the brokers."),
    "kafka-cluster": KafkaTool("cluster", "The cluster's id and endpoints; unregister a broker."),
    "kafka-transactions": KafkaTool("transactions", "Describe transactions, find and abort hanging ones."),
    "kafka-leader-election": KafkaTool("leader_election", "Have leaders of partitions elected."),
    "kafka-reassign-partitions": KafkaTool("reassign_partitions.cli", "Move partitions to other brokers."),
    "kafka-consumer-groups": KafkaTool(
        "consumer_groups.cli", "List, describe and delete groups of consumers, reset their offsets."
    ),
    "kafka-configs": KafkaTool(
        "configs.cli", "Describe and alter settings of topics, brokers, groups, clients and users."
    ),
    "kafka-get-offsets": KafkaTool("get_offsets", "Get the offsets of partitions."),
    "kafka-log-dirs": KafkaTool("log_dirs", "Query brokers' log directories."),
    "kafka-delete-records": KafkaTool("delete_records", "Delete the records of partitions before offsets."),
}
