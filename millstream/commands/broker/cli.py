"""`millstream broker`: list brokers and shut them down, as kafka.admin.ShutdownBroker of Kafka 0.8 did."""

from __future__ import annotations

from typing import Annotated

import typer

from millstream.terminal.command import command
from millstream.terminal.session import Session

app = typer.Typer(add_completion=False, no_args_is_help=True)

BROKERS = ("id", "host", "port", "rack", "controller", "partitions_led")
STOP_SECONDS = 60.0
"""A handover takes up to 15 s; with a hanging controller also the timeout of its ZooKeeper session."""


@app.callback()
def _options() -> None:
    """Brokers: list them, and have them stop."""


@command(app, "list")
async def list_brokers(session: Session) -> None:
    """List the brokers: where to reach them, and how many partitions each leads."""
    from millstream.commands.broker.led import partitions_led

    cluster = await session.admin.describe_cluster()
    led = partitions_led(await session.admin.list_topics())
    session.show(
        (
            {
                "id": broker.node_id,
                "host": broker.host,
                "port": broker.port,
                "rack": broker.rack,
                "controller": broker.node_id == cluster.controller_id,
                "partitions_led": led[broker.node_id],
            }
            for broker in sorted(cluster.brokers, key=lambda broker: broker.node_id)
        ),
        BROKERS,
    )


@command(app)
async def shutdown(
    session: Session,
    *,
    ids: Annotated[list[int], typer.Argument(metavar="ID...", min=0)],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what each leads and whether it could go, and do nothing.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Also where partitions are left without a leader or under min.insync.replicas."
        ),
    ] = False,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How long each may take to leave the cluster.")
    ] = STOP_SECONDS,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Have logd's brokers stop as by SIGTERM: they hand over what they lead, and close their logs.

    Their millstream.remote.shutdown.enable must be true. One is asked after the other, each when the one
    before has left the cluster; behind one that has not, nobody is asked. The exit status is 3 if there is no
    such broker, 5 if its settings do not allow it, 7 if partitions would be left without a leader or under
    min.insync.replicas, 6 if only some have stopped.
    """
    from millstream.commands.broker.shutdown import shut_down

    await shut_down(session, ids, dry_run=dry_run, force=force, yes=yes, seconds=timeout)
