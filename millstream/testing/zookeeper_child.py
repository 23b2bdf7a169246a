"""The process that has a test run's ZooKeeper: a Java server out of PySpark's jars, ended with its input.

    in    {"folder": ..., "keeps": false, "tick_ms": ...}
    out   {"result": CONNECT STRING}  or  {"error": "..."}

The server would go on when the test run is killed: this process stands between them.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from kafka_client.errors import MillstreamError
from millstream.zookeeper.ensemble import Ensemble


def main() -> None:
    """Run it until the input ends."""
    begun = json.loads(sys.stdin.buffer.readline())
    folder = Path(begun["folder"])
    try:
        with Ensemble(folder, tick_ms=begun["tick_ms"]) as ensemble:
            _answer({"result": ensemble.connect_string})
            sys.stdin.buffer.read()
            if not begun["keeps"]:
                for server in ensemble.servers:
                    server.kill()
    except (MillstreamError, OSError) as error:
        _answer({"error": str(error)})
    finally:
        if not begun["keeps"]:
            shutil.rmtree(folder, ignore_errors=True)


def _answer(answer: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
