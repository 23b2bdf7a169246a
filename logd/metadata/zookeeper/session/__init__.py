"""The session with ZooKeeper: connection, lease, and ordered requests. Only this package imports kazoo."""
