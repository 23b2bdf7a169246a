"""The cleaner process: tasks come in on stdin, reports go out on stdout, as `messages` has them.

It ends when its stdin does: with the broker, however that ended.
"""

from __future__ import annotations

import errno
import os
import queue
import sys
import threading
from typing import BinaryIO

import msgspec

from kafka_client.errors import CorruptRecordBatch
from logd.storage.cleaner.cleaning import Cancelled, Cleaning
from logd.storage.cleaner.messages import LENGTH, Cancel, Done, Failed, Order, Report, Task, frame
from logd.storage.cleaner.throttle import Throttle
from logd.storage.disk import PosixDisk

NICENESS = 10
"""Serving clients comes first where processors are short."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Inbox:
    """Reads orders in a thread of its own, so that the broker's end and `Cancel` are heard during a task."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = msgspec.msgpack.Decoder(Order)
        self._tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self.is_cancelled = threading.Event()
        threading.Thread(target=self._read, name="orders", daemon=True).start()

    def next_task(self) -> Task:
        """Wait for the next task and return it."""
        return self._tasks.get()

    def _read(self) -> None:
        while len(head := self._stream.read(LENGTH.size)) == LENGTH.size:
            (size,) = LENGTH.unpack(head)
            if len(order_bytes := self._stream.read(size)) < size:
                break  # the broker was killed in the middle of its order
            order = self._decoder.decode(order_bytes)
            if isinstance(order, Cancel):
                self.is_cancelled.set()
            else:
                self.is_cancelled.clear()
                self._tasks.put(order)
        os._exit(0)


def send(report: Report, out: BinaryIO) -> None:
    """Report; where the broker was killed nobody reads it, and the process ends without a word."""
    try:
        out.write(frame(report))
        out.flush()
    except BrokenPipeError:
        os._exit(0)


def work(task: Task, inbox: Inbox, out: BinaryIO) -> Done | Failed:
    """Carry out a task, reporting its groups; returns what is to be reported last."""

    def report(message: Report) -> None:
        send(message, out)

    throttle = Throttle(task.bytes_per_second) if task.bytes_per_second != float("inf") else None
    cleaning = Cleaning(task, PosixDisk(), report, is_cancelled=inbox.is_cancelled.is_set, throttle=throttle)
    try:
        return cleaning.run()
    except Cancelled:
        return Failed(reason="cancelled", message="")
    except CorruptRecordBatch as error:
        return Failed(reason="corrupt", message=str(error))
    except FileNotFoundError as error:
        return Failed(reason="gone", message=str(error))
    except OSError as error:
        return Failed(reason="full" if error.errno in FULL else "disk", message=str(error))


def main() -> None:
    """Run the cleaner's process."""
    os.nice(NICENESS)
    # Frames have stdout to themselves: whatever prints goes to stderr.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    inbox = Inbox(sys.stdin.buffer)
    while True:
        task = inbox.next_task()
        send(work(task, inbox, out), out)


if __name__ == "__main__":
    main()
