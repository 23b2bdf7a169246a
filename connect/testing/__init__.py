"""A kit for authors of connectors, which runs a task without a broker.

run = SourceRun(FilesSource, {"file": "flights.csv", "topic": "flights"})
records = run.records()          # until the source has ended or has nothing more
run.commit()                     # as if all were acknowledged
run.again().records()            # a restart from the committed offsets

with SinkRun(MySink, {"path": "out"}) as sink:
    sink.put([SinkRecord("t", 0, 0, value={"a": 1})])
    sink.flush()

`connect.testing.conformance` has test classes for a plugin's tests to inherit; they need pytest.
"""

from connect.api.calls import MaybeAwaitable
from connect.testing.runs import Calls, MemoryOffsetStore, SinkRun, SourceRun

__all__ = ["Calls", "MaybeAwaitable", "MemoryOffsetStore", "SinkRun", "SourceRun"]
