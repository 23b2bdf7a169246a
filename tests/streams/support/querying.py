"""A program that counts, has copies of its state elsewhere, and is asked over HTTP until it is killed.

    python -m tests.streams.support.querying BOOTSTRAP NAME STATE_DIR

prints the address of its view once its tasks run.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from streams import KafkaStreams, State, StreamsBuilder, Topology

PARTITIONS = 4
SETTINGS: dict[str, Any] = {
    "poll_ms": 20,
    "commit_interval_ms": 50,
    "heartbeat_interval_ms": 50,
    "session_timeout_ms": 6_000,
    "num_standby_replicas": 1,
    "http_listener": "127.0.0.1:0",
}


def topology(name: str) -> Topology:
    """Counts per key."""
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream(f"{name}-in").group_by_key().count(store="counts")
    return builder.build()


def application(bootstrap: str, name: str, folder: str, **settings: Any) -> KafkaStreams:
    """Return one of several instances."""
    return KafkaStreams(
        topology(name),
        application_id=name,
        bootstrap_servers=bootstrap,
        state_dir=folder,
        **{**SETTINGS, **settings},
    )


async def main(bootstrap: str, name: str, folder: str) -> None:
    app = application(bootstrap, name, folder)

    def say(new: State, old: State) -> None:
        if new is State.RUNNING:
            print(app.host, flush=True)

    app.add_state_listener(say)
    await app.run_until_signalled()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
