"""`kafka-delete-records`: delete the records before offsets, as DeleteRecordsCommand does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.kafka_tools.java.java_errors import JavaError, admin_operation, command_failed
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
    from kafka_client import TopicPartition
    from millstream.terminal.session import Session

OPTIONS = Options(
    "This tool helps to delete records of the given partitions down to the specified offset.",
    [
        Option(
            "bootstrap-server", "REQUIRED: The server to connect to.", "server(s) to use for bootstrapping"
        ),
        Option(
            "offset-json-file",
            "REQUIRED: A file with the offset of each partition: "
            '{"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], "version":1}',
            "Offset json file path",
        ),
        COMMAND_CONFIG,
        HELP,
        VERSION,
    ],
    old={"zookeeper": ZOOKEEPER},
)


def main(arguments: Sequence[str]) -> int:
    """Read the arguments, and delete the records."""
    try:
        values = read_arguments(OPTIONS, arguments)
        values.required("bootstrap-server", "offset-json-file")
        _execute(values)
    except JavaError as error:
        return failed(error.caught, error)
    return 0


def _execute(values: OptionValues) -> None:
    cluster = Cluster.create(values.text("bootstrap-server") or "", values.text("command-config"))
    path = Path(values.text("offset-json-file") or "")
    if not path.exists():
        raise JavaError("java.io.IOException", f"Unable to read file {path}")
    before = _offsets(path.read_text())
    print("Executing records delete operation")

    async def work(session: Session) -> None:
        print("Records delete operation completed:")
        await _delete(session, before)

    try:
        cluster.run(work, "deleteRecords(api=METADATA)")
    except JavaError as error:
        # No broker was reached: Java's client says so of each partition.
        print("Records delete operation completed:")
        for tp in sorted(before):
            print(f"partition: {tp}\terror: {error.full_text}")


def _offsets(text: str) -> dict[TopicPartition, int]:
    from kafka_client import TopicPartition
    from millstream.kafka_tools.options.json_document import parse_json

    document = parse_json(text, "The input string is not a valid JSON")
    version = document.get("version")
    if version is not None and version.integer() != 1:
        raise admin_operation(f"Not supported version field value {version}")
    if (partitions := document.get("partitions")) is None:
        raise admin_operation("Missing partitions field")
    listed: dict[TopicPartition, list[int]] = {}
    for each in partitions.elements():
        tp = TopicPartition(each.field("topic").text(), each.field("partition").integer())
        listed.setdefault(tp, []).append(each.field("offset").integer(64))
    if twice := [tp for tp in sorted(listed) if len(listed[tp]) > 1]:
        raise command_failed(
            f"Offset json file contains duplicate topic partitions: {','.join(map(str, twice))}"
        )
    return {tp: offsets[0] for tp, offsets in listed.items()}


async def _delete(session: Session, before: Mapping[TopicPartition, int]) -> None:
    """Delete the records before these offsets. Print a result or an error for each partition."""
    import asyncio

    from kafka_client.errors import MillstreamError
    from millstream.kafka_tools.java.java_errors import java_error

    tps = sorted(before)
    answers = await asyncio.gather(
        *(session.admin.delete_records({tp: before[tp]}) for tp in tps), return_exceptions=True
    )
    for tp, answer in zip(tps, answers, strict=True):
        if isinstance(answer, dict):
            print(f"partition: {tp}\tlow_watermark: {answer[tp]}")
        elif isinstance(answer, (MillstreamError, TimeoutError, ConnectionError)):
            print(f"partition: {tp}\terror: {java_error(answer, 'deleteRecords').full_text}")
        else:
            raise answer


app = tool(OPTIONS, main)
