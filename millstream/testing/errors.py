"""The errors of a test's broker.

MillstreamError
└── BrokerError: it did not start, has ended, or could not do what it was asked
"""

from __future__ import annotations

from kafka_client.errors import MillstreamError


class BrokerError(MillstreamError):
    """A failure of a test's broker.

    The text names the call and the reason, with the last output of an ended broker.
    """
