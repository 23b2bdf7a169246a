"""The notes in a task's committed offsets: which state belongs to these input positions.

One OffsetCommit is one append to the group's log. So the offsets of a task's inputs and changelogs, and the
notes in their metadata, change together or not at all. The broker limits each note
(``offset.metadata.max.bytes``), so a changelog's note has the times of its own store only:

    first input   {"v": 1, "time": 1357000000000, "stores": {"delays": [1234, -1]}}
    changelog     {"v": 1, "time": -1, "stores": {"delays": [1234, 1357000000000]},
                   "kinds": {"delays": "window"}, "with": "flights"}

A store's two numbers are the changelog offset up to which its content reaches (-1: no changelog) and its
stream time. Its other times (`CachedStore.clocks`) have entries of their own, without an offset. The times of
stores without a changelog are spread over the inputs' notes. So are the changelogs' offsets: the commits of a
deleted topic are lost, and the inputs' notes show that there were some. The entries of a long note are
compressed, in `packed`.

A changelog's note outlives the inputs: state stays when the inputs are deleted and created again, or when
another topology feeds the store from other topics. Its times count only while the input in `with` has a note.

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
"""The length of a note, in characters, from which it is compressed."""
ENDS_MAX = 3500
"""The length of an input's note above which it omits the changelogs' offsets, which are committed anyway."""
UNPACKED_MAX = 1 << 20
"""The limit on the unpacked bytes of a note: other programs may commit any metadata."""
PADDED_MAX = 256 * 1024
"""The total length of a task's notes up to which they are padded to the same length."""

Entries = dict[str, tuple[int, int]]
"""The changelog offset and the time (ms) by name, -1 for none."""

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

    `positions`: the next offset of each input. `changelogs`: the offset after the commit's last record, by
    store; a missing store has no committed state. `changelogs` is None when the committed offsets have no
    note, because an operator moved them: then all records of the changelogs are valid. `kinds`: the kind
    of store of each changelog, as far as it is known.
    """

    positions: Mapping[TopicPartition, int]
    changelogs: Mapping[str, int] | None
    times: StreamTimes
    kinds: Mapping[str, str] = {}


def read_cut(
    committed: Mapping[TopicPartition, OffsetAndMetadata], inputs: Collection[TopicPartition]
) -> Cut:
    """Return the task's last commit, from the committed offsets of its inputs and changelogs."""
    positions = {tp: each.offset for tp, each in committed.items() if tp in inputs}
    notes = [(tp, note) for tp, each in committed.items() if (note := _read_note(each.metadata)) is not None]
    if positions and not notes:
        return Cut(positions, None, StreamTimes())
    changelogs: dict[str, int] = {}
    times: dict[str, int] = {}
    kinds: dict[str, str] = {}
    task_time = -1
    noted_inputs = {tp.topic for tp, _ in notes if tp in inputs}
    # A task may have been several tasks in an earlier topology. Offsets and times only grow.
    for tp, note in notes:
        for name, (offset, time) in note.stores.items():
            if offset >= 0:
                changelogs[name] = max(offset, changelogs.get(name, offset))
            # Times belong to the inputs: no record of an input that was created again is late.
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

    ``ends``: the offset up to which each changelog is valid after this commit. ``kinds``: of the stores.
    """
    own: dict[str, Entries] = {name: {name: (ends[name], times.stores.get(name, -1))} for name in changelogs}
    others: Entries = {name: (ends[name], -1) for name in sorted(changelogs)}
    for name, time in sorted(times.stores.items()):
        store = name.partition(" ")[0]  # The names of a store's other times begin with the name of the store.
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
    """Return the entries in ``count`` parts of about the same size."""
    names = list(entries)
    return [{name: entries[name] for name in names[at::count]} for at in range(count)]


def equally_long(offsets: dict[TopicPartition, OffsetAndMetadata]) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets with the shorter notes padded by spaces, so that a broker accepts all or none.

    Outside of a transaction a broker commits the partitions whose notes it accepts, and refuses the others.
    Neither inputs nor stores could be restored correctly from such a commit.
    """
    longest = max((len(each.metadata) for each in offsets.values()), default=0)
    if longest * len(offsets) > PADDED_MAX:
        return offsets
    return {tp: each._replace(metadata=each.metadata.ljust(longest)) for tp, each in offsets.items()}


def _note(note: _Note) -> str:
    """Return the metadata of a commit, compressed if it is long."""
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
    """Compress entries: differences of times are short, and names are similar."""
    base = max((time for _, time in entries.values()), default=0)
    columns: _Columns = (
        base,
        list(entries),
        [offset for offset, _ in entries.values()],
        [base - time if time >= 0 else -1 for _, time in entries.values()],
    )
    return base64.b85encode(zlib.compress(msgspec.json.encode(columns), 9)).decode()


def _unpack(packed: str) -> Entries:
    """Return the entries that `_pack` compressed. Raises ValueError, zlib.error or DecodeError."""
    data = zlib.decompressobj().decompress(base64.b85decode(packed), UNPACKED_MAX)
    base, names, offsets, earlier = msgspec.json.decode(data, type=_Columns)
    return {
        name: (offset, base - by if by >= 0 else -1)
        for name, offset, by in zip(names, offsets, earlier, strict=True)
    }
