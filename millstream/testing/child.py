"""The process of a test's broker. Commands come in by standard input, answers go out by standard output.

    in    {"folder": ..., "config": {...}, "keeps": false}      once, first
          {"do": "create_topic", "with": {"name": ...}}         then as often as wanted
    out   {"result": ...}  or  {"error": "..."}                 one line for each of these lines

The process ends with its input, so no broker outlives its test run, even one that is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from kafka_client.errors import ConfigError, MillstreamError
from logd.ahead import import_ahead
from millstream.testing.clock import ClockedLoop
from millstream.testing.served import Served
from millstream.with_parent import hear_of_parents_end

LINE_BYTES_MAX = 1 << 24


def main() -> None:
    """Run until the input ends."""
    hear_of_parents_end(signal.SIGCONT)  # a paused process would never see the end of its input
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    gc.freeze()
    loop = ClockedLoop()
    request = json.loads(sys.stdin.buffer.readline())
    folder = Path(request["folder"])
    served = Served(loop, folder, request["config"])
    loop.run_until_complete(_until_input_ends(loop, served))
    if request["keeps"]:
        loop.run_until_complete(served.stop())
    else:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)  # threads and clients are not waited for


async def _until_input_ends(loop: ClockedLoop, served: Served) -> None:
    commands = asyncio.StreamReader(limit=LINE_BYTES_MAX)
    serving = loop.create_task(_serve(commands, served))
    # Also during a command: a start in a cluster waits for other brokers, which may have ended as well.
    await loop.connect_read_pipe(lambda: _Input(commands, serving.cancel), sys.stdin)
    with contextlib.suppress(asyncio.CancelledError):
        await serving


class _Input(asyncio.StreamReaderProtocol):
    def __init__(self, reader: asyncio.StreamReader, ended: Callable[[], object]) -> None:
        super().__init__(reader)
        self._ended = ended

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._ended()


async def _serve(commands: asyncio.StreamReader, served: Served) -> None:
    await _answer(served.start())
    import_ahead()  # while the test imports its client
    while line := await commands.readline():
        command = json.loads(line)
        await _answer(served.do(command["do"], command["with"]))


async def _answer(work: Awaitable[Any]) -> None:
    answer: dict[str, Any]
    try:
        answer = {"result": await work}
    except ConfigError as error:
        answer = {"error": f"{error.key}={error.value!s} is not allowed: {error.allowed}"}
    except (MillstreamError, OSError) as error:
        answer = {"error": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
