"""A mirror killed between the target's ack and its own note of it.

The classic mirror fetches, produces, and commits its source offset now and then. Killed in between, it
starts from the old offset and copies again what the target already has; idempotence does not help, since
the new process is another producer. Ours reads its position back from the target's end, so that nothing
may be doubled or left out, whenever it dies.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from logd.client import BatchProducer, Client
from tests.mirror.pair import Pair, numbered, start_mirror, target_ends
from tests.support.tracebacks import assert_no_tracebacks

PARTITIONS, RECORDS = 2, 4_000
KILLS = 4


def test_a_mirror_killed_again_and_again_copies_every_record_once(
    pair: Pair, new_name: Callable[[], str], tmp_path: Path
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    choose = random.Random(seed)
    topic = new_name()
    config = tmp_path / "mm2.properties"
    config.write_text("".join(f"{key} = {value}\n" for key, value in pair.properties(topic).items()))

    async def main() -> None:
        await fill(pair, topic)
        copied: list[int] = []
        for kill in range(1, KILLS + 1):
            process = start_mirror(config)
            try:
                await wait_for(
                    pair, topic, RECORDS * kill // (KILLS + 3) + choose.randrange(RECORDS // 20), process
                )
            finally:
                process.kill()
                process.wait()
            copied.append(sum((await target_ends(pair, topic)).values()))
        assert 0 < copied[0] < PARTITIONS * RECORDS, "no kill hit the copying"
        assert start_mirror(config, "--until-caught-up").wait(60) == 0
        assert_no_tracebacks(config.with_name("mirror.log").read_text())
        compared = await pair.verify(topic)
        assert compared.equal, compared
        assert compared.records == PARTITIONS * RECORDS

    asyncio.run(main())


async def fill(pair: Pair, topic: str) -> None:
    """A batch for every record, so that there is something to hit."""
    await pair.create(topic, PARTITIONS)
    async with Client(pair.dc1) as client, BatchProducer(client, linger_ms=0, batch_size=1) as producer:
        for i in range(RECORDS):
            for partition in range(PARTITIONS):
                await producer.send(topic, partition, numbered(1, i))
        await producer.flush()


async def wait_for(pair: Pair, topic: str, records: int, process: subprocess.Popen[bytes]) -> None:
    """Until the target's first partition holds so many records."""
    deadline = time.monotonic() + 30
    while (await target_ends(pair, topic)).get(0, 0) < records:
        assert process.poll() is None, "the mirror ended by itself"
        assert time.monotonic() < deadline
