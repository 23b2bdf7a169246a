"""What goes wrong with a broker for tests.

MillstreamError
└── BrokerError: it did not start, has ended, or could not do what it was asked
"""

from __future__ import annotations

from kafka_client.errors import MillstreamError


class BrokerError(MillstreamError):
    """The text says what was asked and what came of it, with the last lines of the broker's output if it has
    ended.
    """
