"""The shared options that `@command` adds, and the exit statuses of errors."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from kafka_client.errors import AuthenticationFailed, ErrorCode, KafkaError, MillstreamError, RequestTimedOut
from millstream.terminal.command import run_to_end
from millstream.terminal.status import NotFound, Partly, Status, Unhealthy, UsageError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (None, Status.OK),
        (MillstreamError("x"), Status.FAILED),
        (UsageError("x"), Status.USAGE),
        (NotFound("x"), Status.NOT_FOUND),
        (KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "x"), Status.NOT_FOUND),
        (KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "x"), Status.FAILED),
        (RequestTimedOut("x"), Status.UNREACHABLE),
        (KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "x"), Status.NOT_ALLOWED),
        (AuthenticationFailed("x"), Status.NOT_ALLOWED),
        (Partly("x"), Status.PARTLY),
        (Unhealthy("x"), Status.UNHEALTHY),
        (KeyboardInterrupt(), Status.INTERRUPTED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_an_error_is_told_and_becomes_the_exit_status(error: BaseException | None, status: Status) -> None:
    app = typer.Typer()

    async def work() -> None:
        if error is not None:
            raise error

    @app.command()
    def run() -> None:
        run_to_end(work(), "millstream thing do")

    result = CliRunner().invoke(app)
    assert result.exit_code == status
    assert result.stdout == ""
    if error is not None and not isinstance(error, KeyboardInterrupt):
        assert result.stderr.startswith("millstream thing do: ")
