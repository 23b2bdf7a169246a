"""The command ``millstream logd``: settings, signals, the loop that ``broker`` and ``server`` run in."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_client.logs.formats import LogFormat
from kafka_client.logs.levels import parse_levels
from kafka_client.logs.stderr import LogForm, LogLevels, LogOptions, log_to_stderr

if TYPE_CHECKING:
    from kafka_client.errors import ConfigError, MillstreamError
    from logd.broker.broker import Broker
    from logd.broker_server import BrokerServer
    from logd.config.load import Loaded

app = typer.Typer(add_completion=False, help="The log daemon: a broker every Kafka client can talk to.")

LOG_LEVEL = "INFO"
"""The level of the log without `--log-level`."""
HTTP_LISTENER = "millstream.http.listener"

COLLECTED_AFTER = (5_000, 10, 10)
"""Garbage collection thresholds: new containers before a collection of the youngest, then rounds per
generation.

Reference counting frees nearly all memory of a broker. With Python's defaults, a topic of 1,000 partitions
(some 50,000 containers) causes one more full collection: 10 ms per 1,000 partitions on the event loop.
"""

PARENT = "MILLSTREAM_LOGD_PARENT"
"""The variable with the number of a pipe's read end, for a broker of several on a host.

The pipe ends when the process that runs the brokers has died.
"""
_BOOT_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The clock of a process's start time in `/proc`; macOS has neither."""

log = logging.getLogger("logd")


@app.command()
def logd(
    config: Annotated[
        Path | None, typer.Option("--config", help="A server.properties file with Kafka's own keys.")
    ] = None,
    override: Annotated[
        list[str] | None, typer.Option("--override", help="key=value on top of the file; repeatable.")
    ] = None,
    node_id: Annotated[int | None, typer.Option("--node-id", help="Short for --override node.id=N.")] = None,
    http: Annotated[
        str | None,
        typer.Option(
            "--http",
            metavar="HOST:PORT",
            help="Serve metrics and health there. Short for --override millstream.http.listener=HOST:PORT.",
        ),
    ] = None,
    processes: Annotated[
        int,
        typer.Option(
            min=1,
            help="Run so many brokers, a process each: of a cluster, with node ids, ports and subfolders of "
            "log.dirs from those given on.",
        ),
    ] = 1,
    log_level: LogLevels = None,
    log_format: LogForm = LogFormat.AUTO,
) -> None:
    """Run a broker, or several, until SIGTERM, SIGINT or SIGHUP."""
    overrides = list(override or ())
    if node_id is not None:
        overrides.append(f"node.id={node_id}")
    if http is not None:
        overrides.append(f"{HTTP_LISTENER}={http}")
    options = LogOptions(log_level, log_format)
    if processes == 1:
        sys.exit(run(config, overrides, options))
    sys.exit(run_several(config, overrides, processes, options))


def run_several(path: Path | None, overrides: list[str], count: int, options: LogOptions) -> int:
    """Run brokers in processes of their own; the exit status is `run`'s."""
    started = _process_age()
    from kafka_client.errors import ConfigError
    from logd.processes.running import run

    def age() -> float:
        return time.clock_gettime(_BOOT_CLOCK) - started

    try:
        parse_levels(options.levels or (), LOG_LEVEL)
        return run(path, overrides, count, more=options.arguments(), pipe_variable=PARENT, age=age)
    except ConfigError as error:
        return _refused(error)


def _refused(error: ConfigError) -> int:
    print(f"logd: {error.key}={error.value!s} is not allowed: {error.allowed}", file=sys.stderr)
    return 2


def run(path: Path | None, overrides: list[str], options: LogOptions) -> int:
    """Run a broker in this process; the exit status: 0 stopped as told, 1 failed, 2 settings are wrong."""
    started = _process_age()
    from kafka_client.errors import ConfigError
    from kafka_client.private_files import hide_from_others
    from logd.config.load import load_config

    hide_from_others()
    parent = os.environ.pop(PARENT, None)
    try:
        loaded = load_config(path, overrides)
        node_id = loaded.config.node_id
        mark = "" if parent is None else f"[{node_id}]"
        log_to_stderr(options, default=LOG_LEVEL, fields={"broker": node_id}, mark=mark)
    except ConfigError as error:
        return _refused(error)
    for note in loaded.notes:
        log.info("%s", note)
    for warning in loaded.warnings:
        log.warning("%s", warning)
    raise_open_files_limit()
    loop_factory = _loop_factory()
    if loop_factory is None:
        log.info("without uvloop each request costs more: pip install 'millstream[uvloop]'")
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(_serve(loaded, started, None if parent is None else int(parent)))


async def _serve(loaded: Loaded, started: float, parent: int | None) -> int:
    """Run the broker, with its HTTP listener if it has one. Return as `_serve_broker`."""
    async with AsyncExitStack() as stack:
        return await _serve_broker(loaded, started, parent, stack)


async def _serve_broker(loaded: Loaded, started: float, parent: int | None, stack: AsyncExitStack) -> int:
    """Run the broker until it is stopped. Return the exit status.

    `stack` ends after the broker: it closes the HTTP listener. `parent` is the read end of a pipe from the
    supervisor; end-of-file means that the supervisor died.
    """
    from kafka_client.errors import ConfigError, MillstreamError
    from logd.ahead import import_ahead
    from logd.broker_server import BrokerServer, membership_of

    import_ahead()
    gc.set_threshold(*COLLECTED_AFTER)
    gc.freeze()  # what was imported stays: it is not looked at again
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores it
            loop.add_signal_handler(number, stop.set)
    if parent is not None:
        loop.add_reader(parent, _orphaned, loop, parent, stop)
    dead = False

    def on_dead() -> None:
        nonlocal dead
        dead = True
        stop.set()

    def failed(error: MillstreamError) -> None:
        log.critical("%s: stopping", error)
        on_dead()

    try:
        membership = membership_of(loaded.config, failed)
        # The end of one among several on a host is the end of all: that is not what an operator asks for.
        on_shutdown = stop.set if parent is None else None
        server = BrokerServer(loaded.config, on_dead=on_dead, on_shutdown=on_shutdown, membership=membership)
        await _open_http(server, stack)
        if membership is None:
            await server.start()
        elif not await _started(server, stop):
            log.info("stopped before it had joined the cluster")
            return 1 if dead else 0
    except ConfigError as error:
        return _refused(error)
    except (MillstreamError, OSError) as error:
        print(f"logd: {error}", file=sys.stderr)
        return 1
    try:
        with suppress(BrokenPipeError):  # who is told is gone
            print(_ready_line(server.broker, started), flush=True)
        await stop.wait()
    finally:
        await server.stop()
    log.info("stopped")
    return 1 if dead else 0


async def _open_http(server: BrokerServer, stack: AsyncExitStack) -> None:
    """Serve metrics and health until `stack` ends, if the settings say where.

    Raises MillstreamError if the address cannot be bound, or the extra `http` is not installed.
    """
    listener = server.broker.config.millstream_http_listener
    if not listener:
        return
    from kafka_client.http import check_installed

    check_installed(HTTP_LISTENER)
    from kafka_client.http.access import HttpAccess
    from kafka_client.http.operations import OperationsServer
    from logd.config.known import HTTP_PREFIX

    access = HttpAccess(server.broker.config.explicit, HTTP_PREFIX)
    operations = OperationsServer(listener, server.broker.metrics, ready=server.problem, access=access)
    await stack.enter_async_context(operations)


def _orphaned(loop: asyncio.AbstractEventLoop, parent: int, stop: asyncio.Event) -> None:
    loop.remove_reader(parent)
    log.warning("the process that runs this broker among others is gone: stopping")
    stop.set()


async def _started(server: BrokerServer, stop: asyncio.Event) -> bool:
    """Start the broker. Return False if a stop signal came while it waited to join the cluster."""
    starting = asyncio.ensure_future(server.start())
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
        await starting
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
        return False
    finally:
        stopping.cancel()
    return True


def _ready_line(broker: Broker, started: float) -> str:
    partitions = len(broker.catalog.partitions)
    seconds = time.clock_gettime(_BOOT_CLOCK) - started
    return (
        f"logd ready at {broker.endpoint} (node {broker.node_id}, cluster {broker.cluster_id}, "
        f"{partitions} partition{'s' if partitions != 1 else ''}, {seconds:.2f} s)"
    )


def _process_age() -> float:
    """Return when this process began, in seconds of the boot clock; the interpreter's start is included."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        return int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return time.clock_gettime(_BOOT_CLOCK)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def raise_open_files_limit() -> None:
    """Lift the soft limit of open files to the hard one: a log holds several files open."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
