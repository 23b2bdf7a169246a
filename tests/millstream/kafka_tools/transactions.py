"""Transactions that stay open while a transcript is played."""

from __future__ import annotations

from confluent_kafka import Producer


class Transactions:
    """Open transactions by their transactional ids."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._open: dict[str, Producer] = {}

    def begin(self, name: str, partition: str, *values: str) -> None:
        """Begin a transaction, and write to a partition."""
        topic, _, number = partition.partition(":")
        producer = Producer({"bootstrap.servers": self._bootstrap, "transactional.id": name})
        producer.init_transactions()
        producer.begin_transaction()
        for at, value in enumerate(values, 1):
            producer.produce(topic, value, partition=int(number), timestamp=1000 * at)
        producer.flush()
        self._open[name] = producer

    def end(self, name: str) -> None:
        """Commit the transaction."""
        self._open.pop(name).commit_transaction()

    def close(self) -> None:
        """Leave the others to their timeouts: a tool may have ended them."""
        self._open.clear()
