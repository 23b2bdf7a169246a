"""`millstream cluster`: show a cluster's brokers, health and API versions, or move it to ZooKeeper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.terminal.command import command, local_command
from millstream.terminal.output import Row
from millstream.terminal.session import Local, Session
from millstream.terminal.status import NotFound, Partly, Unhealthy

if TYPE_CHECKING:
    from kafka_client import BrokerNode

app = typer.Typer(add_completion=False, no_args_is_help=True)

BROKERS = ("id", "host", "port", "rack", "controller")
HEALTH = ("check", "status", "found", "remedy")
APIS = ("broker", "api", "key", "min_version", "max_version")


@app.callback()
def _options() -> None:
    """Show the cluster: its id and controller, its brokers, what they speak, and whether all is well."""


@command(app)
async def describe(session: Session) -> None:
    """Show the cluster's id, its controller, and how many brokers, topics and partitions it has."""
    cluster = await session.admin.describe_cluster()
    topics = await session.admin.list_topics()
    row = {
        "cluster_id": cluster.cluster_id,
        "controller": cluster.controller_id,
        "brokers": len(cluster.brokers),
        "topics": len(topics),
        "partitions": sum(len(topic.partitions) for topic in topics.values()),
    }
    session.show_one(row, tuple(row))


@command(app)
async def brokers(session: Session) -> None:
    """List the brokers and where to reach them."""
    cluster = await session.admin.describe_cluster()

    def row(broker: BrokerNode) -> Row:
        return {
            "id": broker.node_id,
            "host": broker.host,
            "port": broker.port,
            "rack": broker.rack,
            "controller": broker.node_id == cluster.controller_id,
        }

    session.show(map(row, sorted(cluster.brokers, key=lambda broker: broker.node_id)), BROKERS)


@command(app)
async def health(session: Session) -> None:
    """Check that all is well: brokers, controller, log directories, partitions and their leaders.

    The exit status is 7 if anything failed, and 6 if something could not be found out. Moves under way and
    leaders that are not the preferred ones are warnings.
    """
    from millstream.commands.cluster.health import FAILED, UNKNOWN, check_cluster

    findings = await check_cluster(session)
    session.show([finding.row(session.form) for finding in findings], HEALTH)
    by_status = {
        status: ", ".join(finding.check for finding in findings if finding.status == status)
        for status in (FAILED, UNKNOWN)
    }
    if by_status[FAILED]:
        raise Unhealthy(f"not well: {by_status[FAILED]}")
    if by_status[UNKNOWN]:
        raise Partly(f"could not be found out: {by_status[UNKNOWN]}")


@command(app, "api-versions")
async def api_versions(
    session: Session,
    *,
    broker: Annotated[int | None, typer.Option(help="Only this broker; otherwise all of them.")] = None,
) -> None:
    """List the versions of each API that the brokers answer."""
    import asyncio

    ids = [each.node_id for each in (await session.admin.describe_cluster()).brokers]
    if broker is not None and broker not in ids:
        raise NotFound(f"there is no broker {broker}: the cluster has {', '.join(map(str, sorted(ids)))}")
    nodes = sorted(ids) if broker is None else [broker]
    connections = await asyncio.gather(*(session.client.connection(node) for node in nodes))
    rows = [
        {"broker": node, "api": _api_name(key), "key": key, "min_version": lowest, "max_version": highest}
        for node, connection in zip(nodes, connections, strict=True)
        for key, (lowest, highest) in sorted(connection.versions.items())
    ]
    session.show(rows, APIS)


@local_command(app, "move-to-zookeeper")
def move_to_zookeeper(
    local: Local,
    *,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="The broker's server.properties.")
    ] = None,
    override: Annotated[
        list[str] | None, typer.Option("--override", help="key=value on top of the file; repeatable.")
    ] = None,
    log_dirs: Annotated[
        str | None, typer.Option(metavar="DIR,DIR", help="Short for --override log.dirs=DIR,DIR.")
    ] = None,
    node_id: Annotated[int | None, typer.Option(help="Short for --override node.id=N.")] = None,
    zookeeper: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT,HOST:PORT/CHROOT",
            help="Short for --override zookeeper.connect=…; an empty chroot.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Look at the log directories and the chroot, and say what there is."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Move a single broker's metadata to ZooKeeper, where others can join it. The broker must be stopped.

    Topics, settings and producer ids are written to an empty chroot as Kafka's znodes. The log
    directories then note that they are there; no log is touched. Killed at any point, run it again.
    """
    from millstream.commands.cluster.zookeeper_move import run

    short = {"log.dirs": log_dirs, "node.id": node_id, "zookeeper.connect": zookeeper}
    overrides = [*(override or ()), *(f"{key}={value}" for key, value in short.items() if value is not None)]
    run(local, config, overrides, dry_run=dry_run, yes=yes)


def _api_name(key: int) -> str:
    """Return the API's name in Kafka's style, or UNKNOWN with its number."""
    from kafka_client.wire import ApiKey

    try:
        return "".join(word.capitalize() for word in ApiKey(key).name.split("_"))
    except ValueError:
        return f"UNKNOWN({key})"
