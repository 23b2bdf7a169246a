"""The controller's feed to the brokers: an outbox for each broker that is alive, and a task that empties it.

A change is encoded once for all brokers. So is the whole image, which a newly elected controller sends to all
of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from kafka_client.backoff import Backoff
from kafka_client.errors import (
    ConnectionClosed,
    ErrorCode,
    MalformedMessage,
    MillstreamError,
    RequestTimedOut,
)
from kafka_client.wire import Message
from kafka_client.wire.private.cluster_update import ClusterUpdateRequest, ClusterUpdateResponse
from logd.broker.work.periodic import report
from logd.metadata.feed.outbox import WAITING_MAX, Outbox
from logd.metadata.feed.update import Update
from logd.metadata.image import BrokerImage, Change, ClusterImage

BACKOFF_S: Final = (0.05, 1.0)
LANE: Final = "updates"

log = logging.getLogger("logd.cluster")


class Asking(Protocol):
    """Connections to brokers: `PeerConnections`."""

    async def request(self, broker: int, message: Message, *, lane: str = "") -> ClusterUpdateResponse:
        """Ask a broker; MillstreamError."""


class Publisher:
    """The feeds of one controller, from its election to its end. `image` is what the controller has applied.

    `gone` is called when a broker answers that this controller is over.
    """

    def __init__(
        self, controller: int, epoch: int, image: ClusterImage, peers: Asking, fenced: asyncio.Event
    ) -> None:
        self._controller = controller
        self._epoch = epoch
        self._image = image
        self._peers = peers
        self._fenced = fenced
        self._feeds: dict[int, _Feed] = {}
        self._everything: list[msgspec.Raw] | None = None
        """The changes that build the image, encoded, until something changes."""

    def publish(self, changes: Sequence[Change]) -> None:
        """Send changes that the controller has applied. New brokers get a feed of their own, dead ones lose
        it.
        """
        if changes:
            self._everything = None
        self._follow(self._image.brokers)
        update = encoded(changes)
        for feed in self._feeds.values():
            feed.add(update)

    def _snapshot(self) -> list[msgspec.Raw]:
        if self._everything is None:
            self._everything = encoded(self._image.as_changes())
        return self._everything

    def _follow(self, brokers: Mapping[int, BrokerImage]) -> None:
        for id_, feed in tuple(self._feeds.items()):
            if id_ not in brokers or brokers[id_].epoch != feed.broker_epoch:
                feed.close()
                del self._feeds[id_]
        for id_, broker in brokers.items():
            if id_ not in self._feeds:
                outbox = Outbox(self._controller, self._epoch, broker.epoch, self._snapshot)
                self._feeds[id_] = _Feed(id_, outbox, self._peers, self._fenced)

    async def wait_until_received(self, broker: int) -> None:
        """Wait until a broker has received everything published so far, or no longer receives updates."""
        feed = self._feeds.get(broker)
        if feed is not None:
            await feed.emptied()

    async def close(self) -> None:
        """End all feeds."""
        feeds, self._feeds = tuple(self._feeds.values()), {}
        for feed in feeds:
            feed.close()
        await asyncio.gather(*(feed.task for feed in feeds), return_exceptions=True)

    def statistics(self) -> dict[str, int]:
        """Return the count of brokers, and the changes that wait for the slowest one, with their bound."""
        behind = max((feed.waiting for feed in self._feeds.values()), default=0)
        return {"brokers": len(self._feeds), "waiting_changes": behind, "waiting_changes_max": WAITING_MAX}


class _Feed:
    """To one broker: in order, one update at a time, again and again until it is answered."""

    def __init__(
        self, broker: int, outbox: Outbox[msgspec.Raw], peers: Asking, fenced: asyncio.Event
    ) -> None:
        self._broker = broker
        self._outbox = outbox
        self._peers = peers
        self._fenced = fenced
        self._news = asyncio.Event()
        self._news.set()
        self._is_empty = asyncio.Event()
        self.task = asyncio.get_running_loop().create_task(self._run(), name=f"feed of broker {broker}")

    @property
    def broker_epoch(self) -> int:
        return self._outbox.broker_epoch

    @property
    def waiting(self) -> int:
        return self._outbox.waiting

    def add(self, changes: Sequence[msgspec.Raw]) -> None:
        self._outbox.add(changes)
        self._is_empty.clear()
        self._news.set()

    def close(self) -> None:
        self.task.cancel()
        self._is_empty.set()

    async def emptied(self) -> None:
        await self._is_empty.wait()

    async def _run(self) -> None:
        backoff = Backoff(*BACKOFF_S)
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                while (update := self._outbox.next()) is not None:
                    if await self._sent(update):
                        backoff.reset()
                    else:
                        await asyncio.sleep(backoff.next())
            except Exception as error:
                report(f"the feed of broker {self._broker}", error)
                self._outbox.begin_again()  # an update may have been taken out, and is nowhere now
                self._news.set()
                await asyncio.sleep(backoff.next())
            else:
                self._is_empty.set()

    async def _sent(self, update: Update[msgspec.Raw]) -> bool:
        """Send one update; whether to go on at once."""
        try:
            response = await self._peers.request(self._broker, request_of(update), lane=LANE)
        except (ConnectionClosed, RequestTimedOut) as error:
            log.info("broker %d does not take update %d: %s", self._broker, update.number, error)
            self._outbox.failed(update.number, must_begin=False)
            return False
        except MillstreamError as error:
            log.warning("broker %d does not take update %d: %s", self._broker, update.number, error)
            self._outbox.failed(update.number, must_begin=False)
            return False
        match response.error_code:
            case ErrorCode.NONE:
                self._outbox.delivered(update.number)
                return True
            case ErrorCode.INVALID_UPDATE_VERSION:
                self._outbox.failed(update.number, must_begin=True)
                return True
            case ErrorCode.STALE_CONTROLLER_EPOCH:
                log.info("broker %d: %s", self._broker, response.error_message)
                self._fenced.set()
            case code:
                log.info("broker %d refuses update %d: %s %s", self._broker, update.number, code, response)
        self._outbox.failed(update.number, must_begin=False)
        return False


def encoded(changes: Iterable[Change]) -> list[msgspec.Raw]:
    """Return the changes encoded for the wire."""
    return [msgspec.Raw(msgspec.json.encode(change)) for change in changes]


def request_of(update: Update[Any]) -> ClusterUpdateRequest:
    """Return the request that carries an update."""
    return ClusterUpdateRequest(
        controller_id=update.controller,
        controller_epoch=update.controller_epoch,
        broker_epoch=update.broker_epoch,
        number=update.number,
        begins=update.begins,
        is_complete=update.is_complete,
        changes=msgspec.json.encode(update.changes),
    )


def update_of(request: ClusterUpdateRequest) -> Update[Change]:
    """Return the update of a request. Raises MalformedMessage."""
    try:
        changes = msgspec.json.decode(request.changes, type=list[Change])
    except msgspec.DecodeError as error:
        raise MalformedMessage(f"an update of the cluster: {error}") from None
    return Update(
        controller=request.controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        number=request.number,
        begins=request.begins,
        is_complete=request.is_complete,
        changes=changes,
    )
