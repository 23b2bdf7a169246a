"""`millstream cluster move-to-zookeeper`: a single broker's metadata, read, shown and moved."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from logd.broker.cluster.zookeeper_move import SingleNode, look, move
from logd.broker.cluster.zookeeper_settings import zookeeper_settings
from logd.config.load import load_config
from logd.config.zookeeper import ZooKeeperConfig
from logd.metadata.zookeeper.moving import Standing
from millstream.terminal.command import run_loop
from millstream.terminal.output import Row
from millstream.terminal.session import Local

COLUMNS = ("cluster_id", "node", "topics", "partitions", "zookeeper", "state")
_IN_TIME = {
    Standing.EMPTY: "to be moved",
    Standing.BEGUN: "to be gone on with",
    Standing.DONE: "moved before",
}


def run(local: Local, file: Path | None, overrides: Sequence[str], *, dry_run: bool, yes: bool) -> None:
    """Move a single broker's metadata to ZooKeeper, or show with `dry_run` what would be moved.

    `overrides` are key=value on top of the broker's file. Raises MillstreamError if the move is impossible.
    """
    loaded = load_config(file, overrides)
    zookeeper = zookeeper_settings(ZooKeeperConfig.of(loaded.config.explicit))
    with SingleNode(loaded.config.log_dirs, loaded.config.node_id) as node:
        if dry_run:
            standing = run_loop(look(node, zookeeper))
            if node.image is not None or standing is not Standing.EMPTY:
                return local.show_one(_row(node, zookeeper.connect, _IN_TIME[standing]), COLUMNS)
            raise node.is_elsewhere()
        if node.image is not None:
            local.confirm(
                f"Move the metadata of {len(node.image.topics)} topics of broker {node.node_id} to "
                f"{zookeeper.connect}? From then on it starts with zookeeper.connect only.",
                yes=yes,
            )
        standing = run_loop(move(node, zookeeper, lambda: time.time_ns() // 1_000_000))
        state = _IN_TIME[standing] if standing is Standing.DONE else "moved"
        local.show_one(_row(node, zookeeper.connect, state), COLUMNS)
        local.tell(f"Start broker {node.node_id} with zookeeper.connect={zookeeper.connect} from now on.")


def _row(node: SingleNode, connect: str, state: str) -> Row:
    image = node.image
    return {
        "cluster_id": node.cluster_id,
        "node": node.node_id,
        "topics": None if image is None else len(image.topics),
        "partitions": None if image is None else len(image.partitions),
        "zookeeper": connect,
        "state": state,
    }
