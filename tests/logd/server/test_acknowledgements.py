"""Batches that wait to be acknowledged let further ones by; answers keep the requests' order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kafka_client.wire.api_keys import ApiKey
from logd.api.dispatch.dispatch import Outcome, Serving
from logd.api.request.context import RequestContext
from logd.broker_server import BrokerServer
from logd.config.load import from_properties
from logd.server.connection import HELD_MAX
from tests.support.waiting import until

SECONDS = 100


class Stage:
    """A server of requests that are a number each. It responds as the test says, and notes in `served` which
    it has served.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.served: list[int] = []
        self.outcomes: dict[int, Callable[[], Outcome]] = {}
        self.waiting: dict[int, asyncio.Future[bytes]] = {}

    def serve(self, view: memoryview, pos: int, end: int, context: RequestContext) -> Outcome:
        number = int.from_bytes(view[pos + 2 : end], "big")
        self.served.append(number)
        return self.outcomes[number]() if number in self.outcomes else self.acknowledged_later(number)

    def acknowledged_later(self, number: int) -> Outcome:
        self.waiting[number] = asyncio.get_running_loop().create_future()
        return self.waiting[number]

    def send(self, *numbers: int, key: ApiKey = ApiKey.PRODUCE, padding: int = 0) -> None:
        for number in numbers:
            request = key.to_bytes(2, "big") + bytes(padding) + number.to_bytes(4, "big")
            self.writer.write(len(request).to_bytes(4, "big") + request)

    def acknowledge(self, *numbers: int) -> None:
        for number in numbers:
            self.waiting[number].set_result(answer(number))

    async def until_served(self, *numbers: int) -> None:
        def are_served() -> bool:
            assert self.served == list(numbers)[: len(self.served)]
            return len(self.served) == len(numbers)

        await until(are_served)

    async def received(self) -> int:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return int.from_bytes(await self.reader.readexactly(size), "big")

    async def nothing_comes(self) -> None:
        """Nothing was sent, and nothing will be as it is: a turn of broker and client each has passed."""
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await self.reader.readexactly(1)


def answer(number: int) -> bytes:
    return b"\0\0\0\4" + number.to_bytes(4, "big")


def played(tmp_path: Path, story: Callable[[Stage], Awaitable[None]]) -> None:
    async def run() -> None:
        config = from_properties({"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}).config
        broker = BrokerServer(config)
        await broker.start()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", broker.broker.endpoint.port)
            stage = Stage(reader, writer)
            serving: Serving = stage.serve
            broker.intercept(lambda before: serving)
            try:
                async with asyncio.timeout(SECONDS):
                    await story(stage)
            finally:
                writer.close()
        finally:
            await broker.stop()

    asyncio.run(run())


def test_batches_behind_are_served_and_answers_keep_their_order(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        stage.outcomes[3] = lambda: answer(3)  # acks=1, or refused
        stage.outcomes[4] = lambda: None  # acks=0
        stage.send(1, 2, 3, 4, 5)
        await stage.until_served(1, 2, 3, 4, 5)
        stage.acknowledge(5, 2)
        await stage.nothing_comes()
        stage.acknowledge(1)
        assert [await stage.received() for _ in range(4)] == [1, 2, 3, 5]

    played(tmp_path, story)


def test_another_request_waits_for_all_before_it(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        stage.outcomes[3] = lambda: answer(3)
        stage.send(1, 2)
        stage.send(3, key=ApiKey.METADATA)
        stage.send(4)
        await stage.until_served(1, 2)
        stage.acknowledge(2)
        await stage.nothing_comes()
        assert stage.served == [1, 2]
        stage.acknowledge(1)
        assert [await stage.received() for _ in range(3)] == [1, 2, 3]
        await stage.until_served(1, 2, 3, 4)
        stage.acknowledge(4)
        assert await stage.received() == 4

    played(tmp_path, story)


def test_a_batch_that_has_to_be_admitted_holds_up_those_behind_it(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        admitted: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def admit() -> bytes:
            return await admitted

        stage.outcomes[2] = admit
        stage.send(1, 2, 3)
        await stage.until_served(1, 2)
        admitted.set_result(answer(2))
        await stage.until_served(1, 2, 3)
        stage.acknowledge(3)
        await stage.nothing_comes()
        stage.acknowledge(1)
        assert [await stage.received() for _ in range(3)] == [1, 2, 3]

    played(tmp_path, story)


@pytest.mark.parametrize("padding", [0, 200_000])
def test_so_many_wait_and_no_more(tmp_path: Path, padding: int) -> None:
    """Requests over HELD_MAX are not served until earlier ones are acknowledged. They stay in the receive
    buffer and in the socket.
    """

    async def story(stage: Stage) -> None:
        count = 5 * HELD_MAX
        stage.send(*range(count), padding=padding)
        await stage.until_served(*range(HELD_MAX))
        await stage.nothing_comes()
        assert len(stage.served) == HELD_MAX
        for number in range(count):
            await stage.until_served(*range(min(count, number + HELD_MAX)))
            stage.acknowledge(number)
            assert await stage.received() == number

    played(tmp_path, story)


def test_a_client_that_leaves_is_waited_for_no_more(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        stage.send(1, 2)
        await stage.until_served(1, 2)
        stage.writer.close()
        await asyncio.wait(stage.waiting.values())
        assert all(one.cancelled() for one in stage.waiting.values())

    played(tmp_path, story)


@pytest.mark.parametrize("end", ["fails", "is given up"])
def test_one_that_ends_without_an_answer_ends_the_connection(
    tmp_path: Path, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(stage: Stage) -> None:
        stage.send(1, 2, 3)
        await stage.until_served(1, 2, 3)
        stage.acknowledge(1)
        assert await stage.received() == 1
        if end == "fails":
            stage.waiting[2].set_exception(ValueError("a mistake"))
        else:
            stage.waiting[2].cancel()
        stage.acknowledge(3)
        await ended(stage.reader)

    played(tmp_path, story)
    assert [
        record.message.split(": ", 1)[1] for record in caplog.records if record.name == "logd.server"
    ] == ["request failed"][: end == "fails"]


async def ended(reader: asyncio.StreamReader) -> None:
    try:
        assert await reader.read() == b""
    except ConnectionResetError:
        pass
