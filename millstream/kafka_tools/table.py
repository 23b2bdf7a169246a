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
