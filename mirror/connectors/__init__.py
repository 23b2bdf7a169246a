"""MirrorMaker 2's connectors for a Connect worker, under Kafka's class names and with Kafka's settings.

`source_connector` finds the partitions to copy and plans tasks, `source_task` copies, and `sync_writer`
writes the offset syncs. `checkpoint_connector` and `checkpoint_task` translate offsets of groups; `heartbeat`
writes heartbeats. `settings` declares the settings, `assignment` splits work over tasks, and `source_offsets`
has MirrorMaker's form of source offsets. `clients` connects to both clusters, and `refresh` repeats the look
for topics and groups.

The worker's cluster is the target. All three write whole record batches, so the worker's converters have no
effect on them.
"""

from mirror.connectors.checkpoint_connector import MirrorCheckpointConnector
from mirror.connectors.heartbeat import MirrorHeartbeatConnector
from mirror.connectors.source_connector import MirrorSourceConnector

__all__ = ["MirrorCheckpointConnector", "MirrorHeartbeatConnector", "MirrorSourceConnector"]
