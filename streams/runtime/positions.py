"""The note that goes with a task's committed offsets: what state belongs to these positions.

One OffsetCommit is one append to the group's log, so the offsets of a task's inputs and this note change
together or not at all. JSON, in the metadata of the task's first partition:

    {"v": 1, "time": 1357000000000, "stores": {"delays": [1234, 1357000000000], ...}}

A store's two numbers are the changelog offset its content reaches to (-1: it has no changelog) and its
stream time. Its other times (`CachedStore.clocks`) have entries of their own, without an offset.

The same append commits an offset of each changelog too, with a note of that store alone, which also has its
kind: {"counts": "key_value"}. It outlives the inputs: state stays when they are made anew, or when another
topology feeds the store from other topics.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from logd.client import OffsetAndMetadata, TopicPartition
from streams.runtime.task import StreamTimes

VERSION = 1


class _Note(msgspec.Struct):
    v: int
    time: int
    stores: dict[str, tuple[int, int]]
    kinds: dict[str, str] = {}


class Cut(msgspec.Struct, frozen=True):
    """The consistent cut that a task's last commit makes through its inputs and changelogs.

    `positions`: the next offset of each input. `changelogs`: by store, the offset behind the commit's last
    record; a store that is missing here has no committed state. `changelogs` is None when the committed
    offsets carry no note, because an operator moved them: then all records of the changelogs are valid.
    `kinds`: what kind of store each changelog is of, as far as that is known.
    """

    positions: Mapping[TopicPartition, int]
    changelogs: Mapping[str, int] | None
    times: StreamTimes
    kinds: Mapping[str, str] = {}


def write_note(
    changelogs: Mapping[str, int], times: StreamTimes, kinds: Mapping[str, str] | None = None
) -> str:
    """The metadata of a commit."""
    names = sorted(changelogs.keys() | times.stores.keys())
    stores = {name: (changelogs.get(name, -1), times.stores.get(name, -1)) for name in names}
    return msgspec.json.encode(_Note(VERSION, times.task, stores, dict(kinds or {}))).decode()


def read_cut(
    committed: Mapping[TopicPartition, OffsetAndMetadata], inputs: Collection[TopicPartition]
) -> Cut:
    """The task's last commit, from what the group's coordinator has of its inputs and changelogs."""
    positions = {tp: each.offset for tp, each in committed.items() if tp in inputs}
    notes = [(tp, note) for tp, each in committed.items() if (note := _read_note(each.metadata)) is not None]
    if positions and not notes:
        return Cut(positions, None, StreamTimes())
    changelogs: dict[str, int] = {}
    times: dict[str, int] = {}
    kinds: dict[str, str] = {}
    task_time = -1
    # Several, if what is one task now was several in an earlier topology. Offsets and times only grow.
    for tp, note in notes:
        for name, (offset, time) in note.stores.items():
            if offset >= 0:
                changelogs[name] = max(offset, changelogs.get(name, offset))
            # Time goes with the inputs: those made anew begin anew, nothing of them is late.
            if time >= 0 and tp in inputs:
                times[name] = max(time, times.get(name, time))
        task_time = max(note.time, task_time)
        kinds.update(note.kinds)
    return Cut(positions, changelogs, StreamTimes(task_time, times), kinds)


def _read_note(metadata: str) -> _Note | None:
    try:
        note = msgspec.json.decode(metadata, type=_Note)
    except msgspec.DecodeError:
        return None
    return note if note.v == VERSION else None


def commit_offsets(
    positions: Mapping[TopicPartition, int],
    ends: Mapping[str, int],
    times: StreamTimes,
    changelogs: Mapping[str, TopicPartition],
    kinds: Mapping[str, str],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """What to commit for one task: always all its inputs, so that the note is never older than an offset.

    ``ends``: how far each changelog counts with this commit. ``kinds``: of its stores.
    """
    first = min(positions)
    note = write_note(ends, times)
    offsets = {tp: OffsetAndMetadata(offset, note if tp == first else "") for tp, offset in positions.items()}
    for name, tp in changelogs.items():
        note = write_note({name: ends[name]}, StreamTimes(), {name: kinds[name]})
        offsets[tp] = OffsetAndMetadata(ends[name], note)
    return offsets
