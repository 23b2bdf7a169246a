"""`kafka-log-dirs`: brokers' log directories as JSON, as LogDirsCommand prints them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from millstream.kafka_tools.java.java_errors import JavaError, terse
from millstream.kafka_tools.java.java_integers import integer_or_java_error
from millstream.kafka_tools.options.arguments import ZOOKEEPER, Options, OptionValues
from millstream.kafka_tools.options.option import Option
from millstream.kafka_tools.running import (
    COMMAND_CONFIG,
    HELP,
    VERSION,
    Cluster,
    failed,
    read_arguments,
    tool,
)

if TYPE_CHECKING:
    from kafka_client import LogDir
    from millstream.terminal.session import Session

OPTIONS = Options(
    "This tool helps to query log directory usage on the specified brokers.",
    [
        Option("bootstrap-server", "REQUIRED: the brokers to ask.", "The server(s) to use for bootstrapping"),
        COMMAND_CONFIG,
        Option("describe", "Describe the brokers' log directories."),
        Option("topic-list", "Only these topics: topic1,topic2.", "Topic list"),
        Option("broker-list", "Only these brokers: 0,1,2.", "Broker list"),
        HELP,
        VERSION,
    ],
    old={"zookeeper": ZOOKEEPER},
)


def main(arguments: Sequence[str]) -> int:
    """Read the arguments, and print the log directories."""
    try:
        values = read_arguments(OPTIONS, arguments)
        values.required("bootstrap-server", "describe")
        _execute(values)
    except JavaError as error:
        return failed(error.caught, error)
    return 0


def _execute(values: OptionValues) -> None:
    cluster = Cluster.create(values.text("bootstrap-server") or "", values.text("command-config"))
    topics = set(_split(values.text("topic-list")))

    async def work(session: Session) -> None:
        brokers = (await session.client.metadata((), refresh=True)).brokers
        requested = {integer_or_java_error(each) for each in _split(values.text("broker-list"))}
        if missing := requested - set(brokers):
            raise terse(
                f"ERROR: The given brokers do not exist from --broker-list: {_joined(missing)}. "
                f"Current existent brokers: {_joined(brokers)}"
            )
        print("Querying brokers for log directories information")
        folders = await session.admin.describe_log_dirs(requested or set(brokers))
        print(f"Received log directory information from brokers {_joined(folders)}")
        print(json.dumps(_document(folders, topics), separators=(",", ":"), ensure_ascii=False))

    cluster.run(work, "listNodes")


def _split(text: str | None) -> list[str]:
    return [each for each in (text or "").split(",") if each]


def _joined(brokers: Collection[int]) -> str:
    return ",".join(map(str, sorted(brokers)))


def _document(log_dirs: Mapping[int, Sequence[LogDir]], topics: Collection[str]) -> dict[str, Any]:
    """Return the JSON document that is printed, sorted by broker and path."""
    brokers = []
    for broker in sorted(log_dirs):
        folders = {folder.path: folder for folder in log_dirs[broker]}
        paths = sorted(folders)
        brokers.append({"broker": broker, "logDirs": [_folder(folders[path], topics) for path in paths]})
    return {"brokers": brokers, "version": 1}


def _folder(folder: LogDir, topics: Collection[str]) -> dict[str, Any]:
    from millstream.kafka_tools.java.java_errors import of_answer

    chosen = [tp for tp in folder.replicas if not topics or tp.topic in topics]
    return {
        "partitions": [
            {
                "partition": str(tp),
                "size": folder.replicas[tp].size,
                "offsetLag": folder.replicas[tp].offset_lag,
                "isFuture": folder.replicas[tp].is_future,
            }
            for tp in sorted(chosen)
        ],
        "error": None if folder.error is None else of_answer(folder.error).java_class,
        "logDir": folder.path,
    }


app = tool(OPTIONS, main)
