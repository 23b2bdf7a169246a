"""Shutting brokers down: check that they may stop, then stop each and wait until it has left the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from kafka_client import Admin, ResourceType
from kafka_client.errors import BROKER_AWAY, ConnectionClosed, MillstreamError
from millstream.commands.broker.led import partitions_led
from millstream.commands.broker.loss import Loss
from millstream.commands.partition.status import read_standings
from millstream.terminal.output import Row
from millstream.terminal.session import Session, described
from millstream.terminal.status import NotAllowed, NotFound, Partly, Unhealthy

SETTING = "millstream.remote.shutdown.enable"
TIMEOUT_MS = 5_000
"""How long a request is retried."""
LOOK_MS = 100
"""The time between two checks of the cluster's brokers: short, as a service manager may restart a broker."""
COLUMNS = ("broker", "partitions_led", "result", "error")


async def shut_down(
    session: Session, ids: Sequence[int], *, dry_run: bool, force: bool, yes: bool, seconds: float
) -> None:
    """Shut the brokers down one after the other and show a row for each.

    Raises NotFound, NotAllowed or Unhealthy before any broker is asked to stop. Raises Partly if only some
    have stopped, and the first broker's error if none has.
    """
    admin = Admin(session.client, timeout_ms=TIMEOUT_MS)
    brokers = list(dict.fromkeys(ids))
    await _check_known(admin, brokers)
    for broker in brokers:
        await _check_willing(admin, broker)
    led = partitions_led(await admin.list_topics())
    if dry_run:
        session.show([_row(broker, led[broker], "would stop") for broker in brokers], COLUMNS)
    if loss := await _checked_loss(session, admin, brokers, force=force):
        session.tell(f"it leaves {loss}")
    if dry_run:
        return
    named = f"broker{'' if len(brokers) == 1 else 's'} {', '.join(map(str, brokers))}"
    session.confirm(f"Shut down {named}?", yes=yes)
    stopped, failure = await _stop_in_turn(session, admin, brokers, force=force, seconds=seconds)
    session.show(_rows(brokers, led, stopped, failure), COLUMNS)
    if failure is not None and stopped:
        raise Partly(f"{stopped} of {len(brokers)} have stopped: {described(failure)}") from failure
    if failure is not None:
        raise failure


def _rows(
    brokers: Sequence[int], led: Mapping[int, int], stopped: int, failure: MillstreamError | None
) -> Iterator[Row]:
    """Yield a row for each broker: stopped, failed (the next one, if `failure` is set), or not asked."""
    for number, broker in enumerate(brokers):
        if number < stopped:
            yield _row(broker, led[broker], "stopped")
        elif number == stopped and failure is not None:
            yield _row(broker, led[broker], "failed", described(failure))
        else:
            yield _row(broker, led[broker], "not asked")


def _row(broker: int, led: int, result: str, error: str | None = None) -> Row:
    return {"broker": broker, "partitions_led": led, "result": result, "error": error}


async def _check_known(admin: Admin, brokers: Sequence[int]) -> None:
    registered = {each.node_id for each in (await admin.describe_cluster()).brokers}
    if unknown := [str(broker) for broker in brokers if broker not in registered]:
        raise NotFound(
            f"there is no broker {', '.join(unknown)}: "
            f"the cluster has {', '.join(map(str, sorted(registered)))}"
        )


async def _check_willing(admin: Admin, broker: int) -> None:
    """Check that `broker` allows a remote shutdown.

    Raises MillstreamError if it does not know the setting: it would answer by closing the connection.
    Raises NotAllowed if the setting is not true.
    """
    configs = await admin.describe_configs(str(broker), ResourceType.BROKER, keys=(SETTING,))
    if SETTING not in configs:
        raise MillstreamError(
            f"broker {broker} cannot be told to stop: it is no logd, or an older one. Send its process "
            "SIGTERM"
        )
    if configs[SETTING].value != "true":
        raise NotAllowed(
            f"broker {broker} does not take it: start it with {SETTING}=true, or send its process SIGTERM"
        )


async def _checked_loss(session: Session, admin: Admin, going: Sequence[int], *, force: bool) -> Loss:
    """Return what partitions lose without the brokers `going`.

    Raises Unhealthy if they lose any, unless `force`.
    """
    standings = await read_standings(session, await admin.list_topics())
    alive = (await session.client.metadata(())).brokers
    loss = Loss.of(standings, going, alive)
    if loss and not force:
        raise Unhealthy(f"it would leave {loss}: see millstream cluster health, or give --force")
    return loss


async def _stop_in_turn(
    session: Session, admin: Admin, brokers: Sequence[int], *, force: bool, seconds: float
) -> tuple[int, MillstreamError | None]:
    """Return how many brokers have stopped, and the error of the next one; None if all have stopped."""
    with session.progress("stopping", len(brokers), unit="brokers") as progress:
        for number, broker in enumerate(brokers):
            try:
                if number:  # other brokers may have left the cluster meanwhile
                    await _checked_loss(session, admin, brokers[number:], force=force)
                await _stop(session, admin, broker, seconds)
            except MillstreamError as error:
                return number, error
            progress.advance(1)
    return len(brokers), None


async def _stop(session: Session, admin: Admin, broker: int, seconds: float) -> None:
    """Ask the broker to stop and wait until it has left the cluster.

    Raises MillstreamError if the broker is still in the cluster after `seconds`.
    """
    is_last = {each.node_id for each in (await admin.describe_cluster()).brokers} == {broker}
    await admin.shut_down_broker(broker)
    looking = Admin(session.client, timeout_ms=LOOK_MS)
    try:
        async with asyncio.timeout(seconds):
            while not await _has_left(looking, broker, is_last=is_last):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_MS / 1000)
    except TimeoutError:
        raise MillstreamError(
            f"broker {broker} stops, and is still in the cluster after {seconds:g} s: its log says what it "
            "waits for"
        ) from None
    if is_last:
        session.tell(f"broker {broker} was the last one: it answers no more, and may be closing its logs yet")


async def _has_left(admin: Admin, broker: int, *, is_last: bool) -> bool:
    """Return True if `broker` has left the cluster.

    If it was the last broker, a closed connection says so.
    """
    try:
        return all(each.node_id != broker for each in (await admin.describe_cluster()).brokers)
    except BROKER_AWAY as error:
        return is_last and isinstance(error, ConnectionClosed)
