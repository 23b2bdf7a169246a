"""`millstream mirror`'s questions about two clusters, beside `run` of `mirror.cli`.

Whether topics are equal, and by the settings of a flow its checkpoints, translated offsets and lag.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from millstream.commands.mirror.failover import failover_app
from millstream.terminal.command import local_command, run_loop
from millstream.terminal.session import Local
from millstream.terminal.status import NotFound, Unhealthy
from mirror.cli import app
from mirror.verify.comparison import ComparedBy

__all__ = ["app"]

app.add_typer(failover_app, name="failover")

Config = Annotated[Path, typer.Argument(metavar="CONFIG", help="MirrorMaker 2's mm2.properties.")]
Flow = Annotated[
    str | None,
    typer.Option("--flow", metavar="SOURCE->TARGET", help="The flow, if CONFIG enables several."),
]


class Compare(StrEnum):
    """How topics are compared."""

    AUTO = "auto"
    RECORDS = "records"
    LATEST = "latest"

    @property
    def by(self) -> ComparedBy | None:
        """The chosen way, None if the topics' `cleanup.policy` decides."""
        return None if self is Compare.AUTO else ComparedBy(self.value)


@local_command(app)
def verify(
    local: Local,
    *,
    source: Annotated[str, typer.Option("--source", help="Bootstrap servers of the source.")],
    target: Annotated[str, typer.Option("--target", help="Bootstrap servers of the target.")],
    topic: Annotated[
        list[str], typer.Option("--topic", help="Topic of the source, or SOURCE:TARGET; repeatable.")
    ],
    alias: Annotated[
        str,
        typer.Option("--alias", help="The source's alias: its topics are called ALIAS.TOPIC in the target."),
    ] = "",
    command_config: Annotated[
        Path | None,
        typer.Option(
            "--command-config",
            metavar="FILE",
            help="Properties of the clients: security.protocol, ssl.*, sasl.* ...",
        ),
    ] = None,
    target_config: Annotated[
        Path | None,
        typer.Option(
            "--target-config", metavar="FILE", help="The same for the target, if it is another file."
        ),
    ] = None,
    compare: Annotated[
        Compare,
        typer.Option(
            "--compare",
            help="All records in order, or the latest value of each key. auto: latest for compacted topics.",
        ),
    ] = Compare.AUTO,
    rate: Annotated[
        int | None,
        typer.Option(
            "--rate", metavar="BYTES", min=1, help="Bytes a second to read, of both clusters together."
        ),
    ] = None,
) -> None:
    """Compare topics by digest over key, value, headers and timestamp.

    The exit status is 7 if any differ, else 6 if something could not be read.
    """
    from kafka_client import Client
    from kafka_client.properties import read_command_config
    from millstream.commands.mirror.verify import compare_topics, fail_unless_equal, pair

    ours = read_command_config(command_config)
    theirs = ours if target_config is None else read_command_config(target_config)
    pairs = [pair(name, alias) for name in topic]
    clients = Client(source, **ours), Client(target, **theirs)
    fail_unless_equal(local, run_loop(compare_topics(local, *clients, pairs, compare.by, rate)))


@local_command(app)
def checkpoints(
    local: Local,
    *,
    config: Config,
    flow: Flow = None,
    group: Annotated[str | None, typer.Option("--group", help="Only this consumer group.")] = None,
) -> None:
    """Show where the source's consumer groups go on in the target."""
    from millstream.commands.mirror.flow import CHECKPOINT_COLUMNS, checkpoint_row, chosen_flow
    from mirror import inspection

    latest = run_loop(inspection.checkpoints(chosen_flow(config, flow), group))
    local.show(map(checkpoint_row, latest), CHECKPOINT_COLUMNS)


@local_command(app, "translate-offset")
def translate_offset(
    local: Local,
    *,
    config: Config,
    places: Annotated[
        list[str],
        typer.Argument(metavar="TOPIC-PARTITION@OFFSET...", help="Offsets of the source: flights-0@1234."),
    ],
    flow: Flow = None,
) -> None:
    """Show where offsets of the source are in the target.

    The exit status is 3 if an offset is older than the flow's offset syncs, or its partition has none.
    """
    from millstream.commands.mirror.flow import (
        TRANSLATION_COLUMNS,
        chosen_flow,
        translation_row,
        untranslated,
    )
    from mirror import inspection
    from mirror.places import parse_places

    parsed = parse_places("TOPIC-PARTITION@OFFSET", ",".join(places))
    translations = run_loop(inspection.translate_offsets(chosen_flow(config, flow), parsed))
    local.show(map(translation_row, translations), TRANSLATION_COLUMNS)
    if reasons := list(filter(None, map(untranslated, translations))):
        raise NotFound("; ".join(reasons))


@local_command(app)
def lag(local: Local, *, config: Config, flow: Flow = None) -> None:
    """Show how many offsets of each partition are not in the target yet, also while no mirror runs.

    A partition of which nothing was copied has no lag. The exit status is 7 if there is such a partition.
    """
    from millstream.commands.mirror.flow import LAG_COLUMNS, chosen_flow, lag_row
    from mirror import inspection

    rows = run_loop(inspection.lags(chosen_flow(config, flow)))
    local.show(map(lag_row, rows), LAG_COLUMNS)
    if unknown := [str(each.tp) for each in rows if each.lag is None]:
        raise Unhealthy(f"nothing was copied yet: {', '.join(unknown)}")


@local_command(app)
def status(
    local: Local,
    *,
    config: Annotated[
        Path | None,
        typer.Argument(metavar="[CONFIG]", help="The mirror's mm2.properties with http.listener."),
    ] = None,
    http: Annotated[
        str | None, typer.Option("--http", metavar="HOST:PORT", help="Where the mirror serves HTTP.")
    ] = None,
    flow: Annotated[
        str | None, typer.Option("--flow", metavar="SOURCE->TARGET", help="Only this flow.")
    ] = None,
) -> None:
    """Show what a running mirror copies: positions, lag, what stands still and why, what a failover loses.

    The exit status is 7 if a flow is down, or a partition is not copied or of unknown lag; 4 if no mirror
    answers.
    """
    from millstream.commands.mirror.status import ask, endpoint_of, problems, show_flows

    flows = ask(endpoint_of(config, http), flow)
    show_flows(local, flows)
    if unhealthy := problems(flows):
        raise Unhealthy("; ".join(unhealthy))
