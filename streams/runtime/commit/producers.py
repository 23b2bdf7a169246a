"""The choice of producer and guarantee by an instance's settings."""

from __future__ import annotations

from kafka_client import BatchProducer, Client, GroupMember, TransactionalProducer
from kafka_client.records import Codec
from streams.config import StreamsConfig
from streams.runtime.commit.guarantees import AtLeastOnce, ExactlyOnce, Guarantee
from streams.runtime.commit.output import Output
from streams.runtime.commit.transactions import Transactions, transactional_id
from streams.runtime.folder import StateFolder
from streams.runtime.task.environment import Clock


def producer_for(
    client: Client, config: StreamsConfig, folder: StateFolder, clock: Clock
) -> BatchProducer | Transactions:
    """Return a producer that is not started: with transactions for exactly-once."""
    if config.exactly_once:
        return _transactions(client, config, folder, clock)
    return BatchProducer(
        client, compression_type=config.compression_type, max_request_size=config.max_request_size
    )


def guarantee_of(producer: BatchProducer | Transactions, member: GroupMember, output: Output) -> Guarantee:
    """Return the guarantee that this producer provides."""
    if isinstance(producer, Transactions):
        return ExactlyOnce(producer, member)
    return AtLeastOnce(producer, member, output)


def _transactions(client: Client, config: StreamsConfig, folder: StateFolder, clock: Clock) -> Transactions:
    id = transactional_id(config.application_id, folder.path)

    def make() -> TransactionalProducer:
        return TransactionalProducer(
            client,
            id,
            transaction_timeout_ms=config.transaction_timeout_ms,
            compression_type=config.compression_type,
            max_request_size=config.max_request_size,
        )

    return Transactions(
        make,
        clock=clock,
        timeout_ms=config.transaction_timeout_ms,
        codec=Codec.named(config.compression_type),
        max_request_size=config.max_request_size,
    )
