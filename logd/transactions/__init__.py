"""The transaction coordinator's core: transactional ids and the state of their transactions, one
`TransactionShard` per partition of `__transaction_state`.

No sockets, threads, clocks or randomness: the time, new producer ids and the log to append to are handed in.
`logd.broker.transactions` is the shell, which also writes the markers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_client.first_use import at_first_use

if TYPE_CHECKING:
    from logd.transactions.identity import ProducerIdentity
    from logd.transactions.records import (
        TRANSACTION_TOPIC,
        TransactionRecord,
        decode_record,
        encode_record,
    )
    from logd.transactions.settings import TransactionSettings
    from logd.transactions.shard import TransactionShard
    from logd.transactions.states import TransactionState
    from logd.transactions.store import RecordLog
    from logd.transactions.transaction import (
        Transaction,
        TransactionDescription,
    )

__all__ = [
    "TRANSACTION_TOPIC",
    "ProducerIdentity",
    "RecordLog",
    "Transaction",
    "TransactionDescription",
    "TransactionRecord",
    "TransactionSettings",
    "TransactionShard",
    "TransactionState",
    "decode_record",
    "encode_record",
]

_MODULES = {
    "logd.transactions.identity": ("ProducerIdentity",),
    "logd.transactions.records": (
        "TRANSACTION_TOPIC",
        "TransactionRecord",
        "decode_record",
        "encode_record",
    ),
    "logd.transactions.settings": ("TransactionSettings",),
    "logd.transactions.shard": ("TransactionShard",),
    "logd.transactions.states": ("TransactionState",),
    "logd.transactions.store": ("RecordLog",),
    "logd.transactions.transaction": (
        "Transaction",
        "TransactionDescription",
    ),
}
__getattr__ = at_first_use(__name__, _MODULES)
