"""A process that copies one topic into another, in a transaction for every handful of records.

    python -m tests.interop.transactions.copier LIBRARY BOOTSTRAP SOURCE TARGET PARTITIONS COUNT

Every fourth transaction is aborted after everything was sent. The process prints each step, so that a test
can kill the process or the broker at that step. After each transaction the process waits for a line on its
input. It ends when the group has committed all COUNT records of SOURCE. An error that an abort cannot mend
ends it with status 1, and the test has to start it again.
"""

from __future__ import annotations

import faulthandler
import itertools
import signal
import sys

from tests.interop.transactions.clients.base import Consumer, MustAbort, Producer, load

STEPS = ("begun", "sent", "flushed", "offsets", "ended")


def copied(value: bytes) -> bytes:
    """Return the copy of a value."""
    return b"copy of " + value


def aborted(value: bytes) -> bytes:
    """Return the copy of a value in a transaction that is to be aborted."""
    return b"aborted " + value


def tell(step: str) -> None:
    print(step, flush=True)


def end() -> None:
    """Report the end of a transaction, and wait until the parent process asks for the next one."""
    tell("ended")
    sys.stdin.readline()


def copy(producer: Producer, consumer: Consumer, target: str, partitions: int, count: int) -> None:
    turns = itertools.count()
    while sum(consumer.committed(partitions).values()) < count:
        records = consumer.poll()
        if not records:
            continue
        fails = next(turns) % 4 == 3
        try:
            producer.begin()
            tell("begun")
            for partition, _, value in records:
                producer.send(target, aborted(value) if fails else copied(value), partition)
            tell("sent")
            producer.flush()
            tell("flushed")
            producer.send_offsets(consumer)
            tell("offsets")
            if not fails:
                producer.commit()
                end()
                continue
        except MustAbort as error:
            print(f"abort: {error!r}", file=sys.stderr)
        producer.abort()
        end()
        consumer.rewind()


def main() -> None:
    faulthandler.register(signal.SIGUSR1)
    library_name, bootstrap, source, target, partitions, count = sys.argv[1:]
    library = load(library_name)
    producer = library.producer(bootstrap, f"copier-{target}")
    consumer = library.consumer(bootstrap, f"copiers-{target}", source)
    tell("started")
    copy(producer, consumer, target, int(partitions), int(count))
    tell("done")
    consumer.close()
    producer.close()


if __name__ == "__main__":
    main()
