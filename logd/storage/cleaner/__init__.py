"""Log compaction: of every key the last record stays, and deletions (records without a value) for a while.

What happens to a log, and where:

    broker process (owner, the loop)                       child process (`python -m logd.storage.cleaner`)
    ───────────────────────────────────────────────        ────────────────────────────────────────────────
    `selection`  which log is dirtiest; a `Task`     ──►   `offset_map`  the last offset of each key of the
                 says what may be read                                   dirty section, in bounded memory
                                                           `cleaning`    groups of segments, each rewritten
                                                           `grouping`    as one: batches kept as they are,
                                                           `batches`     shortened or dropped
    `swap`       puts the files in, group by group   ◄──   `writing`     `.cleaned` files, on the disk

The log's first part, up to the offset in `cleaner-offset-checkpoint`, is clean: it was compacted before. The
dirty section follows, up to the active segment, the last stable offset or what `min.compaction.lag.ms` keeps
back. A round reads the dirty section for its keys, then both parts are rewritten; offsets never change.

A swap, and what the loader makes of a crash in the midst of it (Kafka's names and order):

    1  the child wrote   X.log.cleaned X.index.cleaned X.timeindex.cleaned [X.txnindex.cleaned], all synced
    2  thread: the removal offset is saved if deletions or markers go (`logd.storage.removals`); then
               each      X.….cleaned → X.….swap, the .log first; the folder is synced
    3  loop:   each old segment's files of the group → ….deleted
    4  loop:   each      X.….swap → X.…, the .log first; reads go to the new segment from here on
    5  thread: the folder is synced; the .deleted files are unlinked after file.delete.delay.ms

    found at start                  means                            the loader
    ──────────────────────────────  ───────────────────────────────  ─────────────────────────────────────────
    X.….cleaned, perhaps X.….swap   stopped in 1 or 2: nothing old   deletes both: the old state
                                    was touched
    X.….swap, no X.….cleaned        stopped in 3 or 4: the new       deletes the old segments the new one
                                    files are whole                  stands for, renames it: the new state
    ….deleted                       stopped in 5                     deletes it

The old segments a new one stands for are told by their base offsets, which lie below its end. Of those behind
its last batch nothing stayed: one that a crash in 3 has left is taken up again as it was, and all it holds is
superseded or deleted elsewhere. They go oldest first, so no record comes back without what superseded it.

The folder's sync in 2 keeps 3 from reaching the disk before 2. Between 3 and 5 a file system keeps renames
within one folder in their order, as journals do; Kafka leans on that too. A record is in the old files or in
the new ones at every step. The checkpoint is written last: at worst a section is cleaned again.

3 and 4 are in the loop, renames for each of up to `grouping.GROUP_SEGMENTS_MAX` segments: a file's name is
the owner's, as the row of segments is. A read or a flush opens a segment's file by its name when it needs it,
and makes an empty one where there is none; retention and DeleteRecords hand out names to be renamed; and when
a topic was deleted and made again, the names are the new log's. A thread would have to hold up all of these.
The renames are not synced; only a file system whose journal is full would make the loop wait.

Readers hold descriptors (`FileSlice`), so no rename disturbs them. Only segments below the recovery point are
cleaned: no flush writes to their files any more.
"""
