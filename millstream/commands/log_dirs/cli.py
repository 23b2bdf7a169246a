"""`millstream log-dirs`: what kafka-log-dirs.sh does, with its options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from millstream.terminal.command import command
from millstream.terminal.completion import complete_topics
from millstream.terminal.output import Row
from millstream.terminal.session import Session
from millstream.terminal.status import NotFound, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kafka_client import LogDir

app = typer.Typer(add_completion=False, no_args_is_help=True)

FOLDERS = ("broker", "log_dir", "error", "partitions", "size", "total_bytes", "usable_bytes")
REPLICAS = ("broker", "log_dir", "topic", "partition", "size", "offset_lag", "is_future")


@app.callback()
def _options() -> None:
    """Brokers' log directories: what is in them and how much room they have."""


@command(app)
async def describe(
    session: Session,
    *,
    broker_list: Annotated[
        str | None, typer.Option(metavar="1,2", help="Only these brokers; otherwise all.")
    ] = None,
    topic_list: Annotated[
        str | None,
        typer.Option(metavar="TOPIC,TOPIC", help="Only these topics.", autocompletion=complete_topics),
    ] = None,
    replicas: Annotated[
        bool, typer.Option("--replicas", help="A line for each partition instead of each folder.")
    ] = False,
) -> None:
    """List log directories with their sizes, in bytes, and the partitions in them."""
    tps = None
    if topic_list is not None:
        names = topic_list.split(",")
        tps = (await session.client.metadata(names, refresh=True)).partitions(names)
    folders = await session.admin.describe_log_dirs(await _brokers(session, broker_list), tps)
    if replicas:
        session.show((row for folder in _folders(folders) for row in folder["replicas"]), REPLICAS)
    else:
        session.show(_folders(folders), FOLDERS)


async def _brokers(session: Session, listed: str | None) -> list[int] | None:
    if listed is None:
        return None
    try:
        requested = [int(each) for each in listed.split(",")]
    except ValueError:
        raise UsageError(f"--broker-list {listed}: ids of brokers, such as 1,2") from None
    existing = (await session.client.metadata((), refresh=True)).brokers
    for broker in requested:
        if broker not in existing:
            ids = ", ".join(map(str, sorted(existing)))
            raise NotFound(f"there is no broker {broker}: the cluster has {ids}")
    return requested


def _folders(by_broker: Mapping[int, Sequence[LogDir]]) -> Iterator[Row]:
    for broker, folders in sorted(by_broker.items()):
        for folder in folders:
            yield {
                "broker": broker,
                "log_dir": folder.path,
                "error": folder.error.code.name if folder.error else None,
                "partitions": len(folder.replicas),
                "size": sum(replica.size for replica in folder.replicas.values()),
                "total_bytes": folder.total_bytes if folder.total_bytes >= 0 else None,
                "usable_bytes": folder.usable_bytes if folder.usable_bytes >= 0 else None,
                "replicas": [
                    {
                        "broker": broker,
                        "log_dir": folder.path,
                        "topic": tp.topic,
                        "partition": tp.partition,
                        "size": replica.size,
                        "offset_lag": replica.offset_lag,
                        "is_future": replica.is_future,
                    }
                    for tp, replica in sorted(folder.replicas.items())
                ],
            }
