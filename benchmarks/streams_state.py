"""A store with many keys: how fast it is filled, restored, read and changed, and the memory of the process.

python -m benchmarks.streams_state [--keys 2000000] [--stores 4] [--way commits|restore] [--runs N]
    [--block-cache-mb 128] [--write-buffer-mb 64] [--folder DIR]

Keys come in no order, shared out over the stores as over tasks. ``commits``: put, drained and written as an
application's commits do, in batches of COMMIT keys; ``restore``: as batches of a changelog that are applied
by `StoreRestore`; then keys at random are read, and others read, changed and committed. No broker takes
part: `benchmarks.streams_restore` measures an application with one. Each run is a process of its own; its
peak is the kernel's VmHWM.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.report import Report
from kafka_client import Fetched, TopicPartition
from kafka_client.records import build_batch
from streams.runtime.restore.restore import StoreRestore
from streams.serdes import Long, String
from streams.state import CachedStore, RocksMemory, StoreSpec, open_store

COMMIT = 20_000
READS = UPDATES = 200_000
SHRINK = 1000
"""Reads after which what they brought into the stores' caches goes again."""
ODD = 0x9E3779B97F4A7C15
"""Multiplication with it puts 64-bit numbers into another order, each once."""
MB = 1 << 20


def main() -> None:
    """Run the benchmark."""
    options = _options()
    if options.measure:
        print(json.dumps(_measure(options, Path(options.folder))))
        return
    results = [_in_a_process(options) for _ in range(options.runs)]
    title = f"{options.keys:,} keys in {options.stores} stores, by {options.way}"
    report = Report(
        f"{title}; block cache {options.block_cache_mb} MiB, buffers {options.write_buffer_mb} MiB"
    )
    targets = {"restored records/s": "≥ 300,000", "peak memory of the process: MB": "≤ 1,000"}
    for figure in results[0]:
        report.add(figure, [each[figure] for each in results], targets.get(figure, ""))
    report.show()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--stores", type=int, default=4)
    parser.add_argument("--way", choices=("commits", "restore"), default="commits")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--block-cache-mb", type=int, default=128)
    parser.add_argument("--write-buffer-mb", type=int, default=64)
    parser.add_argument("--folder", help="where stores are made for the time being")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _in_a_process(options: argparse.Namespace) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        arguments = [*sys.argv[1:], "--measure", "--folder", folder]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.streams_state", *arguments], stdout=subprocess.PIPE, check=True
        )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _measure(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    memory = RocksMemory(
        block_cache_bytes=options.block_cache_mb * MB, write_buffer_bytes=options.write_buffer_mb * MB
    )
    spec = StoreSpec(name="s", kind="key_value", key_serde=String(), value_serde=Long())
    stores: list[Any] = [open_store(spec, folder / f"0_{n}", memory) for n in range(options.stores)]
    before = _kernel_says("VmRSS")
    seconds = (_fill if options.way == "commits" else _restore)(stores, options.keys)
    filled = _kernel_says("VmHWM")
    chance = random.Random(1)
    there = _read(stores, (chance.randrange(options.keys) for _ in range(READS)))
    absent = _read(stores, (options.keys + chance.randrange(options.keys) for _ in range(READS)))
    changed = _change(stores, options.keys, chance)
    verb = "written" if options.way == "commits" else "restored"
    figures = {
        f"{verb} records/s": options.keys / seconds,
        f"{verb} in s": seconds,
        "reads/s of keys that are there": READS / there,
        "reads/s of others": READS / absent,
        "updates/s of random keys": UPDATES / changed,
        "memory before: MB": before / 1e6,
        "peak memory when filled: MB": filled / 1e6,
        "peak memory of the process: MB": _kernel_says("VmHWM") / 1e6,
        "memory in the end: MB": _kernel_says("VmRSS") / 1e6,
        "in the block cache: MB": memory.block_cache.get_usage() / 1e6,
        "on disk: MB": sum(each.stat().st_size for each in folder.rglob("*.sst")) / 1e6,
    }
    for store in stores:
        store.close()
    return figures


def _commits(keys: int, stores: int) -> Iterator[tuple[int, range]]:
    """Yield a store's number, and the numbers of the keys that a commit puts into it."""
    for first in range(0, keys, COMMIT * stores):
        for store in range(stores):
            yield store, range(first + store, min(first + COMMIT * stores, keys), stores)


def _key(number: int) -> str:
    return f"{number * ODD % (1 << 64):016x}"


def _fill(stores: list[Any], keys: int) -> float:
    started_at = time.perf_counter()
    for at, (store, numbers) in enumerate(_commits(keys, len(stores))):
        put = stores[store].put
        for number in numbers:
            put(_key(number), number, number)
        _commit(stores[store], at)
    return time.perf_counter() - started_at


def _commit(store: Any, checkpoint: int) -> None:
    store.drain()
    store.written(checkpoint)
    store.shrink()


def _restore(stores: list[CachedStore], keys: int) -> float:
    """Return the seconds spent in `StoreRestore`.

    The time to build the changelog's batches is not counted.
    """
    tp, seconds = TopicPartition("changelog", 0), 0.0
    end = keys + 1
    restores = [StoreRestore(store, 0, end, end, {}) for store in stores]
    for store, numbers in _commits(keys, len(stores)):
        restore = restores[store]
        records = [(n, _key(n).encode(), n.to_bytes(8, "big"), ()) for n in numbers]
        batch = memoryview(build_batch(records, base_offset=restore.position))
        fetched = Fetched(tp, restore.position, restore.position + len(records), batch)
        started_at = time.perf_counter()
        restore.apply(fetched)
        seconds += time.perf_counter() - started_at
    return seconds


def _read(stores: list[Any], numbers: Iterable[int]) -> float:
    started_at = time.perf_counter()
    for at, number in enumerate(numbers):
        stores[number % len(stores)].get(_key(number))
        if at % SHRINK == 0:
            for store in stores:
                store.shrink()
    return time.perf_counter() - started_at


def _change(stores: list[Any], keys: int, chance: random.Random) -> float:
    """Return the seconds of reading random keys and writing new values, with commits as in `_fill`."""
    started_at = time.perf_counter()
    for done in range(UPDATES):
        number = chance.randrange(keys)
        store, key = stores[number % len(stores)], _key(number)
        store.put(key, (store.get(key) or 0) + 1, number)
        if (done + 1) % COMMIT == 0:
            for each in stores:
                _commit(each, keys + done)
    return time.perf_counter() - started_at


def _kernel_says(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    main()
