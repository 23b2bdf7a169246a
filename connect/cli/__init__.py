"""`millstream connect`: run workers, and ask any worker over REST, also one of Apache Kafka."""

from __future__ import annotations

import typer

from connect.authoring.commands import app as authoring
from connect.cli import apply, distributed, local, offsets, standalone, states
from connect.dlq.cli import app as dlq

app = typer.Typer(
    help="Connect: move data between the log and other systems.", no_args_is_help=True, add_completion=False
)
app.command()(standalone.standalone)
app.command()(distributed.distributed)
app.command()(local.plugins)
app.command("config")(local.show_config)
app.command("list")(states.list_connectors)
app.command()(states.status)
app.command()(apply.apply)
app.command()(apply.diff)
app.command()(apply.validate)
app.command()(states.pause)
app.command()(states.resume)
app.command()(states.stop)
app.command()(states.restart)
app.command()(states.delete)
app.command()(offsets.offsets)
app.add_typer(authoring)
app.add_typer(dlq, name="dlq")
