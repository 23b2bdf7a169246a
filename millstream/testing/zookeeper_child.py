"""The process that has a test run's ZooKeeper: a Java server out of PySpark's jars, ended with its input.

    in    {"folder": ..., "keeps": false, "tick_ms": ...}
    out   {"result": CONNECT STRING}  or  {"error": "..."}

This process ends the server when the test run is killed, which the server itself would survive.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from kafka_client.errors import MillstreamError
from millstream.zookeeper.ensemble import Ensemble


def main() -> None:
    """Run the server until the input ends."""
    request = json.loads(sys.stdin.buffer.readline())
    folder = Path(request["folder"])
    try:
        with Ensemble(folder, tick_ms=request["tick_ms"]) as ensemble:
            _answer({"result": ensemble.connect_string})
            sys.stdin.buffer.read()
            if not request["keeps"]:
                for server in ensemble.servers:
                    server.kill()
    except (MillstreamError, OSError) as error:
        _answer({"error": str(error)})
    finally:
        if not request["keeps"]:
            shutil.rmtree(folder, ignore_errors=True)


def _answer(answer: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
