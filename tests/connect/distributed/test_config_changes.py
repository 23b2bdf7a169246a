"""Changes of the config topic that meet: each is decided by what the earlier ones have written.

Once a connector was left with task configs behind the records of its stop: its plan was decided while it was
STARTED, and written after them. The topic here holds back the reading of a write until the test lets it go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from connect.api import SourceConnector, SourceTask
from connect.distributed.config_changes import ConfigChanges
from connect.distributed.fencing import ZombieFencing
from connect.distributed.plans import PlanSender
from connect.distributed.service import DistributedService
from connect.errors import AlreadyExists, BadRequest, NotFound, NotLeader, Rebalancing
from connect.herder import Herder, TargetState
from connect.runtime.logger_levels import LoggerLevels
from connect.stores import ConfigRecord
from kafka_client.http.client import Answer
from tests.support.waiting import until

PLAN = [{"n": "0"}, {"n": "1"}]


class Checked:
    """Configs that pass without a plugin, once `may_pass` is set."""

    def __init__(self) -> None:
        self.may_pass = asyncio.Event()
        self.may_pass.set()
        self.validated: list[dict[str, str]] = []

    def passed(self, raw: dict[str, str]) -> Any:
        return SimpleNamespace(config=raw, type="source")

    async def check(self, raw: dict[str, str]) -> Any:
        self.validated.append(raw)
        await self.may_pass.wait()
        return SimpleNamespace(config=raw, type="source")


class Leader:
    """A worker that leads, over a config topic in memory whose records are read when `may_read` is set."""

    def __init__(self) -> None:
        self.records: list[ConfigRecord] = []
        self.unread: list[ConfigRecord] = []
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.failure: Exception | None = None
        self.herder = Herder()
        self.leads = True
        self.changes = ConfigChanges(write=self._write, read_to_end=self.read_to_end)
        self.change = self.changes.make
        self.config = SimpleNamespace(
            exactly_once_source_enabled=False, providers=SimpleNamespace(resolve=lambda config: config)
        )
        self.stored: list[Any] = []
        self.offsets = SimpleNamespace(of=lambda topic: SimpleNamespace(put=self._store))
        self.group = SimpleNamespace(stable=self._stable, is_signed=False)
        self.checked = Checked()
        self.configs = self.checked
        self.loggers = LoggerLevels()
        self.service = DistributedService(self)  # type: ignore[arg-type]

    def leader_url(self) -> str | None:
        return None if self.leads else "http://another"

    def has_connector(self, name: str) -> bool:
        return name in self.herder.config.connectors

    async def read_to_end(self) -> None:
        self.herder.read(self.unread)
        self.unread = []

    async def _stable(self) -> None:
        pass

    async def _store(self, changes: Any) -> None:
        self.stored.append(changes)

    async def _write(self, records: Sequence[ConfigRecord]) -> None:
        self.records += records
        self.unread += records
        if self.failure is not None:
            raise self.failure
        await self.may_read.wait()
        await self.read_to_end()

    def plan(self, name: str, configs: list[dict[str, str]]) -> Awaitable[None]:
        return self.service.put_task_configs(name, configs, {}, b"")

    async def together(self, first: Awaitable[Any], *later: Awaitable[Any]) -> list[Any]:
        """Begin the changes in order while the first one is written but not read. Return their results."""
        self.may_read.clear()
        before = len(self.records)
        tasks = [asyncio.ensure_future(first)]
        await until(lambda: len(self.records) > before)
        tasks += [asyncio.ensure_future(each) for each in later]
        for _ in range(20):
            await asyncio.sleep(0)
        self.may_read.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    def replayed(self) -> Herder:
        """Return what a worker knows that reads the topic from its start."""
        herder = Herder()
        herder.read(self.records)
        return herder


@pytest.fixture
async def leader() -> Leader:
    leader = Leader()
    await leader.service.create_connector("c", {"name": "c"})
    await leader.plan("c", PLAN)
    return leader


@pytest.mark.parametrize("is_plan_first", [True, False])
async def test_a_plan_that_meets_a_stop_leaves_no_task_configs(leader: Leader, is_plan_first: bool):
    changes = [leader.plan("c", [*PLAN, {"n": "2"}]), leader.service.set_target("c", TargetState.STOPPED)]
    assert await leader.together(*(changes if is_plan_first else changes[::-1])) == [None, None]
    for herder in (leader.herder, leader.replayed()):
        assert herder.config.target("c") is TargetState.STOPPED
        assert herder.config.task_configs("c") == []


async def test_a_plan_of_the_leaders_own_that_meets_a_stop_is_dropped(leader: Leader):
    plans = PlanSender(leader, leader.herder, leader.change, no_request, "HmacSHA256")

    async def own_plan() -> None:
        plans.send("c", [{"n": "9"}])

    await leader.together(leader.service.set_target("c", TargetState.STOPPED), own_plan())
    await plans.close()
    assert leader.replayed().config.task_configs("c") == []


async def test_a_plan_that_meets_a_deletion_writes_nothing_after_the_tombstone(leader: Leader):
    results = await leader.together(
        leader.service.delete_connector("c"),
        leader.plan("c", [{"n": "9"}]),
        leader.service.set_target("c", TargetState.PAUSED),
        leader.service.delete_connector("c"),
    )
    assert [type(result) for result in results] == [type(None), type(None), NotFound, NotFound]
    assert leader.records[-2:] == [("connector-c", None), ("target-state-c", None)]


async def test_two_creations_of_one_name_make_one_connector(leader: Leader):
    create = leader.service.create_connector
    first, second = await leader.together(create("d", {"a": "1"}), create("d", {"a": "2"}))
    assert first["config"] == {"a": "1", "name": "d"}
    assert isinstance(second, AlreadyExists)
    assert leader.herder.config.connectors["d"] == {"a": "1", "name": "d"}


async def test_of_two_puts_one_is_told_that_it_created(leader: Leader):
    put = leader.service.put_config
    (first, _), (second, _) = await leader.together(put("d", {"a": "1"}), put("d", {"a": "2"}))
    assert (first, second) == (True, False)
    assert leader.herder.config.connectors["d"] == {"a": "2", "name": "d"}


async def test_patches_that_meet_are_all_applied(leader: Leader):
    """The second patch is made of the config that the first has written, and validated again."""
    await leader.together(*(leader.service.patch_config("c", {key: key}) for key in "abc"))
    assert leader.herder.config.connectors["c"] == {"name": "c", "a": "a", "b": "b", "c": "c"}
    assert {"name": "c", "a": "a", "b": "b", "c": "c"} in leader.checked.validated


async def test_a_patch_of_a_connector_deleted_meanwhile_brings_it_not_back(leader: Leader):
    leader.checked.may_pass.clear()
    patching = asyncio.ensure_future(leader.service.patch_config("c", {"a": "1"}))
    await until(lambda: len(leader.checked.validated) == 2)
    await leader.service.delete_connector("c")
    leader.checked.may_pass.set()
    with pytest.raises(NotFound):
        await patching
    assert "c" not in leader.replayed().config.connectors


class Resumed(SourceConnector):
    """A source that is resumed while it looks at the offsets that a user wants."""

    leader: Leader
    task_class = SourceTask

    def task_configs(self, max_tasks: int) -> list[Mapping[str, Any]]:
        return []

    async def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[Any]) -> bool:
        await self.leader.service.set_target("c", TargetState.STARTED)
        return True


async def test_offsets_stay_as_they_are_if_the_connector_is_resumed_meanwhile(leader: Leader):
    Resumed.leader = leader
    config = {"name": "c", "connector.class": f"{__name__}:{Resumed.__name__}"}
    await leader.service.put_config("c", config)
    await leader.service.set_target("c", TargetState.STOPPED)
    with pytest.raises(BadRequest, match="must be in the STOPPED state"):
        await leader.service.alter_offsets("c", [({"p": 1}, {"o": 2})])
    assert leader.stored == []


async def test_a_change_whose_turn_comes_after_the_leadership_is_not_made(leader: Leader):
    async def depose() -> None:
        leader.leads = False

    stop = leader.service.set_target("c", TargetState.STOPPED)
    results = await leader.together(leader.plan("c", [{"n": "9"}]), stop, depose())
    assert isinstance(results[1], NotLeader)
    assert leader.replayed().config.target("c") is TargetState.STARTED


async def test_a_round_of_fencing_counts_no_plan_that_is_being_written(leader: Leader):
    """The count after a plan's commit would say that the tasks before the plan are fenced."""
    fencing = ZombieFencing(
        None,  # type: ignore[arg-type]
        "g",
        leader.herder,
        read_to_end=leader.service._check_changing,
        change=leader.change,
    )
    _, fenced = await leader.together(leader.plan("c", [{"n": "9"}]), fencing.fence("c"))
    assert isinstance(fenced, Rebalancing)
    assert leader.replayed().config.is_pending_fencing("c")


async def test_a_requester_that_gives_up_lets_no_change_overtake_its_own(leader: Leader):
    leader.may_read.clear()
    planning = asyncio.ensure_future(leader.plan("c", [{"n": "9"}]))
    await until(lambda: len(leader.unread) == 2)
    planning.cancel()
    again = asyncio.ensure_future(leader.plan("c", PLAN))
    await asyncio.gather(planning, return_exceptions=True)
    leader.may_read.set()
    await again
    assert leader.replayed().config.task_configs("c") == PLAN


async def test_after_a_write_that_failed_the_topic_is_read_before_the_next_decision(leader: Leader):
    leader.failure = TimeoutError("not done in 30 s")
    with pytest.raises(TimeoutError):
        await leader.service.set_target("c", TargetState.STOPPED)
    leader.failure = None
    await leader.plan("c", [{"n": "9"}])
    assert leader.replayed().config.task_configs("c") == []


def no_request(method: str, url: str, body: bytes, headers: dict[str, str]) -> Answer:
    raise AssertionError("nobody else leads")


async def test_a_newer_plan_is_sent_to_the_leader_after_the_older_one_is_answered(leader: Leader):
    """Both at a time could reach the leader in the other order."""
    sent: list[bytes] = []
    may_answer = asyncio.Event()
    loop = asyncio.get_running_loop()

    def request(method: str, url: str, body: bytes, headers: dict[str, str]) -> Answer:
        sent.append(body)
        asyncio.run_coroutine_threadsafe(may_answer.wait(), loop).result()
        return Answer(status=204, headers={}, body=b"")

    leader.leads = False
    plans = PlanSender(leader, leader.herder, leader.change, request, "HmacSHA256")
    plans.send("c", [{"n": "8"}])
    await until(lambda: len(sent) == 1)
    plans.send("c", [{"n": "9"}])
    plans.send("c", PLAN)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(sent) == 1
    may_answer.set()
    await until(lambda: len(sent) == 2)
    assert b'"n": "1"' in sent[1], "the plan between them is superseded"
    await plans.close()
