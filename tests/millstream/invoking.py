"""Calling the command in this process, through its entry."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from typer.testing import CliRunner, Result

from kafka_client import TopicPartition
from kafka_client.records import NewRecord
from millstream.main import app
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for


def invoke(*arguments: object, input: str | None = None) -> Result:
    """`millstream ARGUMENTS…`."""
    result = CliRunner().invoke(app, list(map(str, arguments)), prog_name="millstream", input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


class On:
    """`millstream NOUN ARGUMENTS… --bootstrap-server …`."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def __call__(self, *arguments: object) -> Result:
        """Whatever comes of it."""
        return invoke(*arguments, "--bootstrap-server", self.bootstrap)

    def done(self, *arguments: object) -> Result:
        """Run the command and assert that it succeeds."""
        result = self(*arguments)
        assert result.exit_code == 0, result.output
        return result

    def rows(self, *arguments: object) -> list[dict[str, Any]]:
        """Run the command and return its rows."""
        rows: list[dict[str, Any]] = json.loads(self.done(*arguments, "-o", "json").stdout)
        return rows


NOBODY = On("127.0.0.1:1")
"""Where no broker is."""


def produce(bootstrap: str, tp: TopicPartition, *timestamps: int) -> None:
    """Write a record for each of the timestamps, in ms; retry while the broker does not know a new topic."""
    with RawClient(int(bootstrap.rpartition(":")[2])) as client:

        def is_taken(record: NewRecord) -> bool:
            return bool(client.produce(tp.topic, [record], partition=tp.partition).error_code == 0)

        for timestamp in timestamps:
            wait_for(partial(is_taken, (timestamp, None, b"value", ())))
