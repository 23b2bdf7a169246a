"""The notes in a task's committed offsets: which state belongs to these input positions.

One OffsetCommit is one append to the group's log, so the offsets of a task's inputs and changelogs change
together or not at all, and so do the notes in their metadata. The broker bounds each note
(``offset.metadata.max.bytes``), so a changelog's note has the times of its own store only:

    first input   {"v": 1, "time": 1357000000000, "stores": {"delays": [1234, -1]}}
    changelog     {"v": 1, "time": -1, "stores": {"delays": [1234, 1357000000000]},
                   "kinds": {"delays": "window"}, "with": "flights"}

A store's two numbers are the changelog offset its content reaches to (-1: it has no changelog) and its
stream time. Its other times (`CachedStore.clocks`) have entries of their own, without an offset. The times of
stores without a changelog are spread over the inputs' notes, and so are the changelogs' offsets: a topic that
is deleted loses what is committed of it, and the inputs tell that there was something. A note that would be
long has its entries compressed, in `packed`.

A changelog's note outlives the inputs: state stays when they are made anew, or when another topology feeds
the store from other topics. Its times do not: they count as long as the input in `with` has its note.

Earlier releases had the offsets and times of all stores in the first input's note. Such notes are still read.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Collection, Mapping, Sequence

import msgspec

from kafka_client import OffsetAndMetadata, TopicPartition
from streams.runtime.task.task import StreamTimes

VERSION = 1
PACKED_FROM = 1000
"""Length of a note, in characters, from which on it is compressed."""
ENDS_MAX = 3500
"""Length of an input's note from which on it has no offsets of changelogs: these are committed anyway."""
UNPACKED_MAX = 1 << 20
"""Bytes that a packed part may have: committed metadata may be anybody's."""
PADDED_MAX = 256 * 1024
"""Length of all of a task's notes together up to which they are made equally long."""

Entries = dict[str, tuple[int, int]]
"""Changelog offset and time (ms) by name, -1 for none."""

_Columns = tuple[int, list[str], list[int], list[int]]
"""The latest of some times (ms), names, their changelog offsets, and how much earlier their times are; -1 for
no offset, and for no time.
"""


class _Note(msgspec.Struct, omit_defaults=True):
    v: int
    time: int
    stores: Entries
    kinds: dict[str, str] = {}
    with_: str = msgspec.field(default="", name="with")
    packed: str = ""


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
    noted_inputs = {tp.topic for tp, _ in notes if tp in inputs}
    # Several, if what is one task now was several in an earlier topology. Offsets and times only grow.
    for tp, note in notes:
        for name, (offset, time) in note.stores.items():
            if offset >= 0:
                changelogs[name] = max(offset, changelogs.get(name, offset))
            # Time goes with the inputs: those made anew begin anew, nothing of them is late.
            if time >= 0 and (tp in inputs or note.with_ in noted_inputs):
                times[name] = max(time, times.get(name, time))
        task_time = max(note.time, task_time)
        kinds.update(note.kinds)
    return Cut(positions, changelogs, StreamTimes(task_time, times), kinds)


def commit_offsets(
    positions: Mapping[TopicPartition, int],
    ends: Mapping[str, int],
    times: StreamTimes,
    changelogs: Mapping[str, TopicPartition],
    kinds: Mapping[str, str],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return one task's offsets to commit: always all its inputs, so that no note is older than an offset.

    ``ends``: how far each changelog counts with this commit. ``kinds``: of its stores.
    """
    own: dict[str, Entries] = {name: {name: (ends[name], times.stores.get(name, -1))} for name in changelogs}
    others: Entries = {name: (ends[name], -1) for name in sorted(changelogs)}
    for name, time in sorted(times.stores.items()):
        store = name.partition(" ")[0]  # what a store's other times begin with
        if name not in own:
            own.get(store, others)[name] = (-1, time)
    inputs = sorted(positions)
    spread = _spread(others, len(inputs))
    if any(len(_note(_Note(VERSION, -1, entries))) > ENDS_MAX for entries in spread):
        without_ends = {name: entry for name, entry in others.items() if entry[0] < 0}
        spread = _spread(without_ends, len(inputs))
    notes = {
        tp: _note(_Note(VERSION, -1 if at else times.task, entries)) if entries or not at else ""
        for at, (tp, entries) in enumerate(zip(inputs, spread, strict=True))
    }
    offsets = {tp: OffsetAndMetadata(positions[tp], notes[tp]) for tp in positions}
    for name, tp in changelogs.items():
        note = _Note(VERSION, -1, own[name], {name: kinds[name]}, with_=inputs[0].topic)
        offsets[tp] = OffsetAndMetadata(ends[name], _note(note))
    return offsets


def _spread(entries: Entries, count: int) -> Sequence[Entries]:
    """The entries in so many parts of about the same number."""
    names = list(entries)
    return [{name: entries[name] for name in names[at::count]} for at in range(count)]


def equally_long(offsets: dict[TopicPartition, OffsetAndMetadata]) -> dict[TopicPartition, OffsetAndMetadata]:
    """The same, with spaces behind the shorter notes, so that a broker takes all of them or none.

    Outside of a transaction a broker commits the partitions whose notes it takes, and refuses the others: of
    such a commit neither inputs nor stores could be restored rightly.
    """
    longest = max((len(each.metadata) for each in offsets.values()), default=0)
    if longest * len(offsets) > PADDED_MAX:
        return offsets
    return {tp: each._replace(metadata=each.metadata.ljust(longest)) for tp, each in offsets.items()}


def _note(note: _Note) -> str:
    """The metadata of a commit, compressed where it is long."""
    text = msgspec.json.encode(note).decode()
    if len(text) < PACKED_FROM:
        return text
    packed = _pack(note.stores)
    return msgspec.json.encode(msgspec.structs.replace(note, stores={}, packed=packed)).decode()


def _read_note(metadata: str) -> _Note | None:
    try:
        note = msgspec.json.decode(metadata, type=_Note)
        if note.packed:
            note.stores.update(_unpack(note.packed))
    except (msgspec.DecodeError, ValueError, zlib.error):
        return None
    return note if note.v == VERSION else None


def _pack(entries: Entries) -> str:
    """Entries in few characters: differences of times are short, and names are alike."""
    base = max((time for _, time in entries.values()), default=0)
    columns: _Columns = (
        base,
        list(entries),
        [offset for offset, _ in entries.values()],
        [base - time if time >= 0 else -1 for _, time in entries.values()],
    )
    return base64.b85encode(zlib.compress(msgspec.json.encode(columns), 9)).decode()


def _unpack(packed: str) -> Entries:
    """The inverse of `_pack`."""
    data = zlib.decompressobj().decompress(base64.b85decode(packed), UNPACKED_MAX)
    base, names, offsets, earlier = msgspec.json.decode(data, type=_Columns)
    return {
        name: (offset, base - by if by >= 0 else -1)
        for name, offset, by in zip(names, offsets, earlier, strict=True)
    }
