"""The parts that the group and transaction coordinators share: logs, producer ids, requests to peers."""
