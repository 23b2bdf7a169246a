"""Shutting brokers down: whether they may go, asking one after the other, waiting until each has left."""

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
"""How long one question is repeated."""
LOOK_MS = 100
"""Between two looks at who is in the cluster: short, since a service manager may start a broker again."""
COLUMNS = ("broker", "partitions_led", "result", "error")


async def shut_down(
    session: Session, ids: Sequence[int], *, dry_run: bool, force: bool, yes: bool, seconds: float
) -> None:
    """Show a row for each broker. NotFound, NotAllowed and Unhealthy come before any is asked, Partly where
    some have stopped; else what the first was refused by.
    """
    admin = Admin(session.client, timeout_ms=TIMEOUT_MS)
    wanted = list(dict.fromkeys(ids))
    await _check_known(admin, wanted)
    for broker in wanted:
        await _check_willing(admin, broker)
    led = partitions_led(await admin.list_topics())
    if dry_run:
        session.show([_row(broker, led[broker], "would stop") for broker in wanted], COLUMNS)
    if loss := await _checked_loss(session, admin, wanted, force=force):
        session.tell(f"it leaves {loss}")
    if dry_run:
        return
    named = f"broker{'' if len(wanted) == 1 else 's'} {', '.join(map(str, wanted))}"
    session.confirm(f"Shut down {named}?", yes=yes)
    stopped, failure = await _stop_in_turn(session, admin, wanted, force=force, seconds=seconds)
    session.show(_rows(wanted, led, stopped, failure), COLUMNS)
    if failure is not None and stopped:
        raise Partly(f"{stopped} of {len(wanted)} have stopped: {described(failure)}") from failure
    if failure is not None:
        raise failure


def _rows(
    wanted: Sequence[int], led: Mapping[int, int], stopped: int, failure: MillstreamError | None
) -> Iterator[Row]:
    """So many have stopped, the next one failed, if any, and nobody behind that was asked."""
    for number, broker in enumerate(wanted):
        if number < stopped:
            yield _row(broker, led[broker], "stopped")
        elif number == stopped and failure is not None:
            yield _row(broker, led[broker], "failed", described(failure))
        else:
            yield _row(broker, led[broker], "not asked")


def _row(broker: int, led: int, result: str, error: str | None = None) -> Row:
    return {"broker": broker, "partitions_led": led, "result": result, "error": error}


async def _check_known(admin: Admin, wanted: Sequence[int]) -> None:
    known = {each.node_id for each in (await admin.describe_cluster()).brokers}
    if unknown := [str(broker) for broker in wanted if broker not in known]:
        raise NotFound(
            f"there is no broker {', '.join(unknown)}: the cluster has {', '.join(map(str, sorted(known)))}"
        )


async def _check_willing(admin: Admin, broker: int) -> None:
    """A broker that does not know the setting is not asked: it would close the connection without a word."""
    found = await admin.describe_configs(str(broker), ResourceType.BROKER, keys=(SETTING,))
    if SETTING not in found:
        raise MillstreamError(
            f"broker {broker} cannot be told to stop: it is no logd, or an older one. Send its process "
            "SIGTERM"
        )
    if found[SETTING].value != "true":
        raise NotAllowed(
            f"broker {broker} does not take it: start it with {SETTING}=true, or send its process SIGTERM"
        )


async def _checked_loss(session: Session, admin: Admin, going: Sequence[int], *, force: bool) -> Loss:
    """What is lost without these brokers; Unhealthy where that is anything, unless it is forced."""
    known = await read_standings(session, await admin.list_topics())
    alive = (await session.client.metadata(())).brokers
    loss = Loss.of(known, going, alive)
    if loss and not force:
        raise Unhealthy(f"it would leave {loss}: see millstream cluster health, or give --force")
    return loss


async def _stop_in_turn(
    session: Session, admin: Admin, wanted: Sequence[int], *, force: bool, seconds: float
) -> tuple[int, MillstreamError | None]:
    """How many have stopped, and what became of the next one; None where all have."""
    with session.progress("stopping", len(wanted), unit="brokers") as progress:
        for number, broker in enumerate(wanted):
            try:
                if number:  # others may have gone meanwhile by themselves
                    await _checked_loss(session, admin, wanted[number:], force=force)
                await _stop(session, admin, broker, seconds)
            except MillstreamError as error:
                return number, error
            progress.advance(1)
    return len(wanted), None


async def _stop(session: Session, admin: Admin, broker: int, seconds: float) -> None:
    """Ask it, and wait until it has left the cluster. MillstreamError where it is still there."""
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
    """Behind the last one nobody is there to be asked."""
    try:
        return all(each.node_id != broker for each in (await admin.describe_cluster()).brokers)
    except BROKER_AWAY as error:
        return is_last and isinstance(error, ConnectionClosed)
