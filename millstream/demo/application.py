"""The streams application in a process of its own: `python -m millstream.demo.application CONFIG`.

It prints a JSON line every half second: the records read and dropped, the lag, and how often it has caught
up.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import signal
import sys
from pathlib import Path

from kafka_client.errors import MillstreamError
from kafka_client.java_properties import read_properties
from millstream.demo.topology import topology
from streams import KafkaStreams, StreamsConfig
from streams.cli import GC_THRESHOLD

REPORT_SECONDS = 0.5


async def run(config: StreamsConfig) -> None:
    """Run until SIGTERM and report the status."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    rounds = 0
    async with KafkaStreams(topology(), config) as streams:
        through = asyncio.create_task(streams.wait_until_caught_up())
        try:
            while not stop.is_set():
                streams.check()
                if through.done():
                    through.result()
                    rounds += 1
                    through = asyncio.create_task(streams.wait_until_caught_up())
                report(streams, await streams.lag(), rounds)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(REPORT_SECONDS):
                        await stop.wait()
        finally:
            through.cancel()
            await asyncio.gather(through, return_exceptions=True)


def report(streams: KafkaStreams, lag: int, rounds: int) -> None:
    """Print a status line."""
    status = {"state": streams.state.value, "lag": lag, "caught_up": rounds, **streams.summary()}
    print(json.dumps(status), flush=True)


def main() -> None:
    """Run the demo's streams application until it is stopped."""
    gc.set_threshold(GC_THRESHOLD)
    settings = read_properties(Path(sys.argv[1]))
    try:
        asyncio.run(run(StreamsConfig.from_properties(settings)))
    except MillstreamError as error:  # for example a killed broker: the demo starts the application again
        sys.exit(str(error))


if __name__ == "__main__":
    main()
