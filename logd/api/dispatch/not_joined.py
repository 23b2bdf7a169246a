"""The handler of requests while a broker joins a cluster, before it serves.

The broker knows no topics and no other brokers yet, and must not say so: a client would take its partitions
for deleted. Requests between brokers are served, since the controller's updates are among them, and so is
what a connection begins with. Any other request closes its connection, as if the broker were not up yet.
"""

from __future__ import annotations

import struct

from logd.api.dispatch.dispatch import Outcome, Serving
from logd.api.request.answer import NotYet
from logd.api.request.context import RequestContext
from logd.api.table import API_VERSIONS, BROKER_APIS, SASL_AUTHENTICATE, SASL_HANDSHAKE

_KEY = struct.Struct(">h")
_SERVED = frozenset({API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE, *BROKER_APIS})


def for_brokers_only(serve: Serving) -> Serving:
    """Serve what a connection begins with, and what brokers ask each other."""

    def serve_some(view: memoryview, pos: int, end: int, context: RequestContext) -> Outcome:
        if end - pos >= _KEY.size and (key := _KEY.unpack_from(view, pos)[0]) not in _SERVED:
            raise NotYet(f"asked for API {key}, and this broker has not joined its cluster yet")
        return serve(view, pos, end, context)

    return serve_some
