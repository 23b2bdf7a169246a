"""`millstream doctor`: looks at the machine, changes nothing, and says what to mend."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from millstream.terminal.command import local_command
from millstream.terminal.session import Local
from millstream.terminal.status import Unhealthy

app = typer.Typer(add_completion=False)

COLUMNS = ("check", "status", "found", "remedy")


@local_command(app)
def doctor(
    local: Local,
    *,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="The server.properties of a broker that is to run here."
        ),
    ] = None,
    override: Annotated[
        list[str] | None, typer.Option("--override", metavar="KEY=VALUE", help="On top of it; repeatable.")
    ] = None,
) -> None:
    """Check this machine for a broker: ports, files, disks, the clock, certificates, permissions, ZooKeeper.

    Java and the record core, too. The exit status is 7 if anything fails; a warning is none.
    """
    from millstream.commands.doctor.checks import run_checks
    from millstream.commands.doctor.finding import FAILED
    from millstream.commands.doctor.settings import read_settings

    findings = run_checks(read_settings(config, override or []))
    local.show(
        (dict(zip(COLUMNS, finding, strict=True)) for finding in findings),
        COLUMNS,
    )
    if failed := [finding.check for finding in findings if finding.status == FAILED]:
        raise Unhealthy(f"to be mended: {', '.join(failed)}")
