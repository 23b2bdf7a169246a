"""Copies topics from one cluster to another in whole batches, and checks that two topics are equal.

`link` opens and runs one flow, `links` several. `config`, `filters`, `policy` and `unused_keys` read its
settings from `mm2.properties`. `topics` creates the remote topics and keeps their configs in sync.

`source` copies batches in order, exactly once; `partition` is the state of one partition's copy.
`forward_batch` prepares one batch for the target. `offsets` reads and writes the offset-syncs topic; `syncs`
translates offsets by them, and `checkpoints` the offsets of groups. `records` has MirrorMaker 2's records,
`internal_topics` reads and creates the flow's own topics, `group_settings` are the settings about groups,
and `heartbeats` writes a flow's heartbeats.

`position` computes where a copy resumes after a stop or a kill; `start_positions` does so for many
partitions. `quarantine` keeps the partitions that cannot be copied for now; `unreadable` the batches to skip.

`client` answers questions about a cluster from the topics of its mirrors.

`connectors` has MirrorMaker's connectors for Connect workers.

`verify` compares two topics by `digest`. `cli` is `millstream mirror run`.
"""
