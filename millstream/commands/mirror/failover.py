"""`millstream mirror failover`: what a failover would cost now, its steps, and the groups' offsets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from millstream.terminal.command import local_command, run_loop
from millstream.terminal.session import Local
from millstream.terminal.status import Partly, Unhealthy

failover_app = typer.Typer(no_args_is_help=True, help="Fail over to the target of a flow, or back.")

Config = Annotated[Path, typer.Argument(metavar="CONFIG", help="MirrorMaker 2's mm2.properties.")]
Flow = Annotated[
    str | None,
    typer.Option("--flow", metavar="SOURCE->TARGET", help="The flow, if CONFIG enables several."),
]


@local_command(failover_app)
def plan(
    local: Local,
    *,
    config: Config,
    flow: Flow = None,
    http: Annotated[
        str | None,
        typer.Option("--http", metavar="HOST:PORT", help="Where the mirror serves HTTP, for its RPO."),
    ] = None,
) -> None:
    """Show what a failover now would lose, where groups would go on, and the steps. Nothing is changed.

    The exit status is 0 if it is safe, 7 if records are lost or a group has no place, 6 if that is unknown.
    """
    from millstream.commands.mirror.failover_plan import ask_mirror, read_plan, show_plan
    from millstream.commands.mirror.flow import flow_and_back
    from mirror.failover.plan import Verdict

    settings, back = flow_and_back(config, flow)
    result = run_loop(read_plan(settings, back, ask_mirror(local, config, http, settings.name)))
    show_plan(local, result, settings, str(config))
    if result.verdict is Verdict.UNKNOWN:
        raise Partly(f"{result.flow}: it is unknown what a failover now would lose")
    if result.verdict is not Verdict.SAFE:
        raise Unhealthy(f"{result.flow}: a failover now {result.verdict}")


@local_command(failover_app)
def offsets(
    local: Local,
    *,
    config: Config,
    flow: Flow = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", help="Only this consumer group; repeatable.")
    ] = None,
    run: Annotated[bool, typer.Option("--execute", help="Commit the offsets.")] = False,
) -> None:
    """Commit in the target where consumer groups go on. Without --execute they are shown and nothing is set.

    No offset goes back, and no group that has members in the target is changed: the exit status is 6 then.
    """
    from millstream.commands.mirror.failover_plan import COMMIT_COLUMNS, commit_rows, read_plan
    from millstream.commands.mirror.flow import flow_and_back
    from mirror.failover.offsets import commits, execute

    settings, back = flow_and_back(config, flow)
    places = run_loop(read_plan(settings, back, {})).groups
    planned = commits(place for place in places if not group or place.group in group)
    errors = run_loop(execute(settings.target, planned)) if run else {}
    local.show(commit_rows(planned, errors), COMMIT_COLUMNS)
    failures = [f"{each.group}: {each.why_not}" for each in planned if each.why_not is not None]
    failures += [f"{name}: {error}" for name, error in errors.items()]
    if failures:
        raise Partly("; ".join(failures))
