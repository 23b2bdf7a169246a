"""A mirror killed between the target's ack and its own note of it.

The classic mirror fetches, produces, and commits its source offset now and then. Killed in between, it
starts from the old offset and copies again what the target already has; idempotence does not help, since
the new process is another producer. Ours reads its position back from the target's end, so that nothing
may be doubled or left out, whenever it dies.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from kafka_client import BatchProducer, Client
from tests.mirror.pair import Pair, numbered, start_mirror, target_ends
from tests.support.tracebacks import assert_no_tracebacks

PARTITIONS, KILLS = 2, 4
BACKLOG = 1_500
"""Records in each partition that a mirror finds to be copied when it starts."""


async def test_a_mirror_killed_again_and_again_copies_every_record_once(
    pair: Pair, new_name: Callable[[], str], tmp_path: Path
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    choose = random.Random(seed)
    topic = new_name()
    config = tmp_path / "mm2.properties"
    config.write_text("".join(f"{key} = {value}\n" for key, value in pair.properties(topic).items()))
    await pair.create(topic, PARTITIONS)
    records = kills = 0
    while kills < KILLS:
        copied = (await target_ends(pair, topic)).get(0, 0)
        await fill(pair, topic, range(records, records := copied + BACKLOG))
        process = start_mirror(config)
        try:
            await wait_for(pair, topic, copied + choose.randrange(1, BACKLOG // 4), process)
        finally:
            process.kill()
            process.wait()
        # A mirror that had copied everything before the kill came does not count.
        kills += sum((await target_ends(pair, topic)).values()) < PARTITIONS * records
    assert start_mirror(config, "--until-caught-up").wait(60) == 0
    assert_no_tracebacks(config.with_name("mirror.log").read_text())
    compared = await pair.verify(topic)
    assert compared.equal, compared
    assert compared.records == PARTITIONS * records


async def fill(pair: Pair, topic: str, numbers: range) -> None:
    """Write a batch for every record, so that a kill can come between batches."""
    async with Client(pair.dc1) as client, BatchProducer(client, linger_ms=0, batch_size=1) as producer:
        for i in numbers:
            for partition in range(PARTITIONS):
                await producer.send(topic, partition, numbered(1, i))
        await producer.flush()


async def wait_for(pair: Pair, topic: str, records: int, process: subprocess.Popen[bytes]) -> None:
    """Until the target's first partition holds so many records."""
    deadline = time.monotonic() + 60
    while (await target_ends(pair, topic)).get(0, 0) < records:
        assert process.poll() is None, "the mirror ended by itself"
        assert time.monotonic() < deadline
