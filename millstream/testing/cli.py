"""`millstream test-broker -- COMMAND`: a broker for the time of a command.

For tests in any language: the command finds the broker by KAFKA_BOOTSTRAP_SERVERS. Its exit status is passed
on (128 and the signal's number where one ended it, 127 where it cannot be run); 2 is a wrong command line, or
a broker that does not start.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from types import FrameType
from typing import Annotated

import typer

from kafka_client.errors import ConfigError
from kafka_client.java_properties import parse_overrides
from millstream.testing.broker import Broker
from millstream.testing.errors import BrokerError

app = typer.Typer(add_completion=False)

VARIABLE = "KAFKA_BOOTSTRAP_SERVERS"
CANNOT_RUN = 127
BY_SIGNAL = 128
WRONG = 2


@app.command(context_settings={"allow_interspersed_args": False})
def run_with_broker(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND...", help="What to run, such as: mvn test")
    ],
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:PARTITIONS]", help="Create this topic first; repeatable."),
    ] = None,
    override: Annotated[
        list[str] | None, typer.Option("--override", help="A broker's setting, key=value; repeatable.")
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"Set this variable as well as {VARIABLE}; repeatable."),
    ] = None,
) -> None:
    """Run a command with a Kafka broker of its own, whose address is in KAFKA_BOOTSTRAP_SERVERS.

    The broker is empty at first and gone with the command. When the command fails, where the topics end and
    the last requests are printed to stderr.
    """
    topics = [_topic(text) for text in topic or ()]
    try:
        with Broker(parse_overrides(override or ())) as broker:
            for name, partitions in topics:
                broker.topic(name, partitions)
            status = _run(command, dict.fromkeys([VARIABLE, *(env or ())], broker.bootstrap_servers))
            if status:
                print(f"test-broker: status {status} of {command[0]}\n{broker.report()}", file=sys.stderr)
    except ConfigError as error:
        print(f"test-broker: {error.key}={error.value!s} is not allowed: {error.allowed}", file=sys.stderr)
        status = WRONG
    except BrokerError as error:
        print(f"test-broker: {error}", file=sys.stderr)
        status = WRONG
    raise typer.Exit(status)


def _topic(text: str) -> tuple[str, int]:
    name, colon, partitions = text.partition(":")
    if not name or (colon and not (partitions.isdecimal() and int(partitions))):
        raise typer.BadParameter(f"--topic: {text!r} is not NAME or NAME:PARTITIONS, such as orders:3")
    return name, int(partitions) if colon else 1


def _run(command: list[str], variables: dict[str, str]) -> int:
    try:
        process = subprocess.Popen(command, env={**os.environ, **variables})
    except OSError as error:
        print(f"test-broker: cannot run {command[0]}: {error.strerror}", file=sys.stderr)
        return CANNOT_RUN

    def pass_on(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        status = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else BY_SIGNAL - status
