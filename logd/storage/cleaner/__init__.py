"""Log compaction: the last record of every key stays, and deletions (records without a value) for a time.

The parts, and where they run:

    broker process (owner, the loop)                       child process (`python -m logd.storage.cleaner`)
    ───────────────────────────────────────────────        ────────────────────────────────────────────────
    `selection`  which log is dirtiest; a `Task`     ──►   `offset_map`  the last offset of each key of the
                 names its segments                                      dirty section, in bounded memory
                                                           `cleaning`    groups of segments, each rewritten
                                                           `grouping`    as one: batches stay, are
                                                           `batches`     shortened or removed
    `swap`       swaps in the files, group by group  ◄──   `writing`     `.cleaned` files, on the disk

The log's first part, up to the offset in `cleaner-offset-checkpoint`, is clean: it was compacted before. The
dirty section follows. It ends at the active segment, the last stable offset, or the first segment with a
record younger than `min.compaction.lag.ms`. A round first reads the keys of the dirty section. Then both
parts are rewritten; offsets never change.

A swap, and how the loader recovers from a crash in each step (with Kafka's names and order):

    1  the child wrote   X.log.cleaned X.index.cleaned X.timeindex.cleaned [X.txnindex.cleaned], all synced
    2  thread: the removal offset is saved if deletions or markers go (`logd.storage.removals`); then
               each      X.….cleaned → X.….swap, the .log first; the directory is synced
    3  loop:   each old segment's files of the group → ….deleted
    4  loop:   each      X.….swap → X.…, the .log first; reads go to the new segment from here on
    5  thread: the directory is synced; the .deleted files are unlinked after file.delete.delay.ms

    files at start                  means                            the loader
    ──────────────────────────────  ───────────────────────────────  ─────────────────────────────────────────
    X.….cleaned, perhaps X.….swap   stopped in 1 or 2: old files     deletes both: the old state
                                    are untouched
    X.….swap, no X.….cleaned        stopped in 3 or 4: the new       deletes the replaced segments,
                                    files are whole                  renames the new one: the new state
    ….deleted                       stopped in 5                     deletes it

A new segment replaces the old segments whose base offsets are before its end. Old segments after its last
batch have no remaining records. If a crash in 3 leaves one of them, it becomes part of the log again,
unchanged: all its records are superseded or deleted elsewhere. The old segments are renamed oldest first, so
no record comes back without the record that superseded it.

The directory's sync in 2 keeps 3 from reaching the disk before 2. Between 3 and 5 a file system keeps renames
within one directory in their order, as journals do; Kafka relies on that too. At every step, a record is in
the old files or in the new ones. The checkpoint is written last: at worst a section is cleaned again.

3 and 4 run in the event loop, with renames for each of up to `grouping.GROUP_SEGMENTS_MAX` segments. The
reason is that file names belong to the log's owner, as the row of segments does. A read or a flush opens a
segment's file by its name, and creates an empty file if it is missing. Retention and DeleteRecords return
names to rename. If a topic is deleted and created again, the names belong to the new log. A thread would have
to block all of these. The renames are not synced; only a file system with a full journal would make the loop
wait.

Readers hold descriptors (`FileSlice`), so renames do not affect them. Only segments below the recovery point
are cleaned: no flush writes to their files.
"""
