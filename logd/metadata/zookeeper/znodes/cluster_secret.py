"""The znode of the secret by which the brokers of a cluster log in to each other."""

from __future__ import annotations

import msgspec

from logd.metadata.zookeeper.errors import BadZnode
from logd.metadata.zookeeper.znodes import paths

_REMEDY = "stop all brokers, delete the znode with a ZooKeeper shell, and start them again"


class _ClusterSecret(msgspec.Struct):
    secret: str


def encode_cluster_secret(secret: str) -> bytes:
    """Encode `/millstream/cluster_secret`."""
    return msgspec.json.encode({"version": 1, "secret": secret})


def decode_cluster_secret(data: bytes) -> str:
    """Decode `/millstream/cluster_secret`. Raises BadZnode, which does not quote the value."""
    try:
        secret = msgspec.json.decode(data, type=_ClusterSecret).secret
    except msgspec.DecodeError:
        secret = ""
    if not secret:
        raise BadZnode(paths.CLUSTER_SECRET, b"[hidden]", "it must be JSON with a `secret`", _REMEDY)
    return secret
