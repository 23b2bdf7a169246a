"""A program that fills stores which share a small budget, reads them, and says what memory that took.

    python filling.py FOLDER KEYS BLOCK_CACHE_BYTES WRITE_BUFFER_BYTES

prints ``{"peak": ..., "before": ..., "cache": ..., "files": ..., "read": ...}``: bytes at most and before the
first store, bytes in the block cache, files written, keys found again.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from streams.state import RocksMemory
from streams.state.rocks import RocksBackend

STORES = 4
COMMIT = 2_000
READS = 20_000
VALUE = bytes(range(250)) * 2


def memory_bytes(name: str) -> int:
    """``VmHWM`` or ``VmRSS`` of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def main(folder: str, keys: int, block_cache_bytes: int, write_buffer_bytes: int) -> None:
    memory = RocksMemory(block_cache_bytes=block_cache_bytes, write_buffer_bytes=write_buffer_bytes)
    before = memory_bytes("VmRSS")
    stores = [RocksBackend(Path(folder) / f"s{number}", memory=memory) for number in range(STORES)]
    for first in range(0, keys, COMMIT):
        for store in stores:
            store.write([(b"%016d" % n, VALUE) for n in range(first, first + COMMIT)], first)
    chance, hits = random.Random(1), 0
    for _ in range(READS):
        hits += chance.choice(stores).get(b"%016d" % chance.randrange(keys)) is not None
    files = len([*Path(folder).glob("*/*.sst")])
    cache = memory.block_cache.get_usage()
    for store in stores:
        store.close()
    report = {"peak": memory_bytes("VmHWM"), "before": before, "cache": cache, "files": files, "read": hits}
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
