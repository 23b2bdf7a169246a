"""quixstreams' side of `benchmarks.streams_peers`; runs in an environment of its own."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from quixstreams import Application, State

WARM = 0.1
"""This part of the records is not counted."""

times: list[tuple[float, float]] = []
done = 0


def stateless(frame: Any) -> Any:
    """Convert values to upper case and drop half of them."""
    return frame.apply(str.upper).filter(lambda value: value[0] < "N")


def count(frame: Any) -> Any:
    """Count the records of each key, and send the count at each record."""

    def counted(value: str, state: State) -> int:
        count = state.get("count", 0) + 1
        state.set("count", count)
        return int(count)

    return frame.apply(counted, stateful=True)


def main(work: str, bootstrap: str, application: str, folder: str, total: int) -> None:
    """Run the benchmark."""

    def note(topic: str, partition: int, offset: int) -> None:
        global done
        done += 1
        if done in (int(total * WARM), total):
            times.append((time.perf_counter(), time.process_time()))

    app = Application(
        bootstrap,
        consumer_group=application,
        auto_offset_reset="earliest",
        state_dir=folder,
        loglevel="ERROR",
        on_message_processed=note,
    )
    source = app.topic("records", key_deserializer="string", value_deserializer="string")
    kind = "int" if work == "count" else "string"
    target = app.topic(f"quix-{work}", key_serializer="string", value_serializer=kind)
    {"stateless": stateless, "count": count}[work](app.dataframe(source)).to_topic(target)
    app.run(count=total, collect=False)
    (began, cpu_began), (ended, cpu_ended) = times
    counted = total - int(total * WARM)
    print(json.dumps({"seconds": ended - began, "cpu": cpu_ended - cpu_began, "records": counted}))


if __name__ == "__main__":
    _, work, at, group, state, records = sys.argv
    main(work, at, group, state, int(records))
