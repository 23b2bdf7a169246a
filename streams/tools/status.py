"""The status of an application: its lag behind its inputs, and the content of its state folders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafka_client import Admin, Client
from streams.config import StreamsConfig
from streams.errors import StateError
from streams.state.stored import look_at

Row = dict[str, Any]
_TASK = re.compile(r"\d+_\d+")


async def lag_rows(client: Client, application_id: str) -> list[Row]:
    """Return a row for each input partition with a committed offset, repartition topics included."""
    admin = Admin(client)
    committed = await admin.list_group_offsets(application_id)
    # Changelogs have committed offsets only for group tools: they are not read as inputs.
    changelogs = re.compile(rf"{re.escape(application_id)}-.*-changelog")
    inputs = sorted(tp for tp in committed if not changelogs.fullmatch(tp.topic))
    ends = await admin.list_offsets(dict.fromkeys(inputs, "latest"))
    return [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "committed": committed[tp].offset,
            "end": ends[tp].offset,
            "lag": max(ends[tp].offset - committed[tp].offset, 0),
        }
        for tp in inputs
    ]


def state_rows(config: StreamsConfig) -> Iterator[Row]:
    """Yield a row for each store on disk, of all workers; with a ``problem`` if RocksDB does not open it."""
    root = Path(config.state_dir)
    for base in (root, *sorted(root.glob("worker-*"), key=_number)):
        for task in sorted((base / config.application_id).glob("*_*"), key=_number):
            if _TASK.fullmatch(task.name):
                for store in sorted((task / "rocksdb").glob("[!~]*")):
                    yield {"folder": str(base / config.application_id), "task": task.name, **_store(store)}


def _store(path: Path) -> Row:
    try:
        stored = look_at(path)
    except StateError as error:
        return {"store": path.name, "problem": str(error)}
    return {
        "store": path.name,
        "bytes": stored.bytes,
        "keys": stored.keys,
        "checkpoint": stored.checkpoint,
        "as_of": stored.as_of,
    }


def _number(path: Path) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", path.name))
