"""`python -m tests.logd.api_transactions.dying STEP -m logd ...`: a broker that kills itself at a step.

Steps are counted over every record of the transaction coordinator and every marker, once before and once
after each. Which one it was stands in the output.
"""

from __future__ import annotations

import functools
import itertools
import os
import runpy
import signal
import sys
from collections.abc import Callable
from typing import Any

from logd.broker.transactions.log import TxnLog
from logd.broker.transactions.markers import Markers


def dying(function: Callable[..., Any], steps: itertools.count[int], last: int) -> Callable[..., Any]:
    def step(when: str, arguments: tuple[Any, ...]) -> None:
        if next(steps) == last:
            sys.stdout.write(f"killed {when} {function.__qualname__} {arguments[1:]}\n")
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    @functools.wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        step("before", arguments)
        result = function(*arguments, **options)
        step("after", arguments)
        return result

    return wrapped


if __name__ == "__main__":
    steps = itertools.count()
    last = int(sys.argv[1])
    TxnLog.append = dying(TxnLog.append, steps, last)  # type: ignore[method-assign]
    Markers.write = dying(Markers.write, steps, last)  # type: ignore[method-assign]
    sys.argv = ["logd", *sys.argv[4:]]
    runpy.run_module("logd", run_name="__main__")
