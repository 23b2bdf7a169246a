"""`millstream cluster`: what there is to know of a cluster and its brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from millstream.terminal.command import command
from millstream.terminal.output import Row
from millstream.terminal.session import Session
from millstream.terminal.status import NotFound, Partly, Unhealthy

if TYPE_CHECKING:
    from logd.client import BrokerNode

app = typer.Typer(add_completion=False, no_args_is_help=True)

BROKERS = ("id", "host", "port", "rack", "controller")
HEALTH = ("check", "status", "found", "remedy")
APIS = ("broker", "api", "key", "min_version", "max_version")


@app.callback()
def _options() -> None:
    """The cluster: its id and controller, its brokers, what they speak, and whether all is well."""


@command(app)
async def describe(session: Session) -> None:
    """The cluster's id, its controller, and how much is in it."""
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
    """The brokers and where to reach them."""
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
    """Whether all is well: brokers, controller, log folders, partitions and their leaders.

    The exit status is 7 if anything failed, and 6 if something could not be found out. Moves under way and
    leaders that are not the preferred ones are warnings.
    """
    from millstream.cluster.health import FAILED, UNKNOWN, check_cluster

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
    """The versions of each API that the brokers answer."""
    import asyncio

    known = [each.node_id for each in (await session.admin.describe_cluster()).brokers]
    if broker is not None and broker not in known:
        raise NotFound(f"there is no broker {broker}: the cluster has {', '.join(map(str, sorted(known)))}")
    asked = sorted(known) if broker is None else [broker]
    connections = await asyncio.gather(*(session.client.connection(node) for node in asked))
    rows = [
        {"broker": node, "api": _api_name(key), "key": key, "min_version": lowest, "max_version": highest}
        for node, connection in zip(asked, connections, strict=True)
        for key, (lowest, highest) in sorted(connection.versions.items())
    ]
    session.show(rows, APIS)


def _api_name(key: int) -> str:
    """The API's name in Kafka's style; its number where we do not know it."""
    from logd.wire import ApiKey

    try:
        return "".join(word.capitalize() for word in ApiKey(key).name.split("_"))
    except ValueError:
        return f"UNKNOWN({key})"
