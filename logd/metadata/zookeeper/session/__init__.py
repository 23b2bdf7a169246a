"""The session with ZooKeeper: connection, lease, and requests in order. Only this room imports kazoo."""
