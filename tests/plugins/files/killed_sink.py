"""A files sink whose process is killed (SIGKILL) at a step on the disk: `killed_sink.py FOLDER FORMAT N`.

It puts offsets 0 to 12 in files of 5 offsets, and prints the offset that a worker would have committed last.
"""

import os
import pathlib
import signal
import sys

from connect.api import SinkRecord, schema
from connect.testing import SinkRun
from plugins.files import FilesSink

STEPS = ((os, "fsync"), (pathlib.Path, "replace"), (pathlib.Path, "mkdir"), (pathlib.Path, "open"))
ROW = schema.struct({"n": schema.int64()})


def records(begin, end):
    return [SinkRecord("t", 0, n, value={"n": n}, value_schema=ROW) for n in range(begin, end)]


def kill_at(step):
    """Kill this process before or after a call: steps 0 and 1 are those round the first call."""
    count = 0

    def reach():
        nonlocal count
        if count == step:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    def killing(call):
        def called(*args, **options):
            reach()
            result = call(*args, **options)
            reach()
            return result

        return called

    for owner, name in STEPS:
        setattr(owner, name, killing(getattr(owner, name)))


def main(folder, kind, step):
    sink = SinkRun(FilesSink, {"path": folder, "format": kind, "file.records.max": "5"})
    kill_at(int(step))
    for begin, end in ((0, 3), (3, 9), (9, 13)):
        sink.put(records(begin, end))
        sink.flush()
        print(end, flush=True)
    sink.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
