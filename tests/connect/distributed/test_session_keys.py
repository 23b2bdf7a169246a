"""The rotation of session keys, with clocks that the test moves."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from connect.distributed.session_keys import SessionKeys
from connect.herder import Herder
from connect.herder.session_key import SessionKey
from connect.stores.config_records import Decision

TTL = 3600.0


class Rotation:
    """A leader's session keys, with a clock and a wall clock."""

    def __init__(self) -> None:
        self.now, self.wall = 50.0, 1_800_000_000.0
        self.herder = Herder()
        config = SimpleNamespace(
            inter_worker_key_ttl_ms=int(TTL * 1000),
            inter_worker_key_generation_algorithm="HmacSHA256",
            inter_worker_key_size=None,
        )
        self.keys = SessionKeys(
            config,
            self.herder,
            may_rotate=lambda: True,
            change=self.change,
            clock=lambda: self.now,
            wall_clock=lambda: self.wall,
        )

    async def change(self, decide: Decision) -> None:
        self.herder.read(decide())
        self.keys.note()

    def read(self, created_ms: int) -> None:
        key = SessionKey(b"k", "HmacSHA256", created_ms)
        self.herder.read([("session-key", key.value())])

    @property
    def created_ms(self) -> int:
        key = self.herder.config.session_key
        assert key is not None
        return key.created_ms


@pytest.fixture
def rotation() -> Rotation:
    return Rotation()


def test_a_key_is_due_if_there_is_none(rotation: Rotation):
    rotation.keys.note_first()
    assert rotation.keys.seconds_left() <= 0


@pytest.mark.parametrize("jump", [10 * TTL, -10 * TTL])
async def test_a_jump_of_the_wall_clock_changes_no_keys_time(rotation: Rotation, jump: float):
    rotation.keys.note_first()
    await rotation.keys.replace()
    assert rotation.created_ms == 1_800_000_000_000, "the record has the wall clock's time"
    rotation.wall += jump
    assert rotation.keys.seconds_left() == TTL
    rotation.now += TTL - 1
    assert rotation.keys.seconds_left() == 1
    rotation.now += 1
    assert rotation.keys.seconds_left() == 0
    await rotation.keys.replace()
    assert rotation.created_ms == int(rotation.wall * 1000)
    assert rotation.keys.seconds_left() == TTL, "a replaced key is not due again"


@pytest.mark.parametrize(
    ("age", "left"),
    [(0, TTL), (600, TTL - 600), (TTL, 0), (10 * TTL, 0), (-10 * TTL, TTL)],
    ids=["new", "young", "old", "of another age", "of the future"],
)
def test_a_key_that_is_there_at_the_start_has_its_records_age(rotation: Rotation, age: float, left: float):
    rotation.read(int((rotation.wall - age) * 1000))
    rotation.keys.note_first()
    assert rotation.keys.seconds_left() == left


def test_a_key_that_another_leader_wrote_is_new_when_it_arrives(rotation: Rotation):
    """The other worker's wall clock says nothing here."""
    rotation.keys.note_first()
    rotation.read(int((rotation.wall - 20 * TTL) * 1000))
    rotation.keys.note()
    rotation.now += 5
    rotation.keys.note()
    assert rotation.keys.seconds_left() == TTL - 5
