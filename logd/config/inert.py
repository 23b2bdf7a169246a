"""Settings that Apache Kafka accepts while it runs, and that have no effect here.

They are checked, stored and described as in Kafka, so that tools which set them work. Each one's
documentation says why it has no effect. Further keys without effect are in `known`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logd.config.setting import LONG_MAX, Kind, Setting, Value, at_least, between

_POSITIVE = at_least(1)
_ONE_LOOP = "Without effect: one event loop serves all requests; background.threads do blocking work."
_ONE_FETCHER = "Without effect: a follower fetches from each leader over one connection."
_NO_TIERS = "Without effect: there is no tiered storage."
_NO_KERBEROS = "Without effect: no listener speaks Kerberos."
_NO_OAUTH = "Without effect: this broker does not log in anywhere."


def _inert(key: str, kind: Kind, default: Value, doc: str, **facts: Any) -> Setting:
    return Setting(key=key, kind=kind, default=default, doc=doc, dynamic=True, **facts)


_SETTINGS = (
    _inert("num.io.threads", Kind.INT, 8, _ONE_LOOP, allowed=_POSITIVE),
    _inert("num.network.threads", Kind.INT, 3, _ONE_LOOP, allowed=_POSITIVE),
    _inert("num.replica.fetchers", Kind.INT, 1, _ONE_FETCHER, allowed=_POSITIVE),
    _inert("remote.fetch.max.wait.ms", Kind.INT, 500, _NO_TIERS, allowed=_POSITIVE),
    _inert("remote.list.offsets.request.timeout.ms", Kind.LONG, 30_000, _NO_TIERS, allowed=_POSITIVE),
    _inert("remote.log.index.file.cache.total.size.bytes", Kind.LONG, 1 << 30, _NO_TIERS, allowed=_POSITIVE),
    _inert("remote.log.manager.copier.thread.pool.size", Kind.INT, 10, _NO_TIERS, allowed=_POSITIVE),
    _inert("remote.log.manager.copy.max.bytes.per.second", Kind.LONG, LONG_MAX, _NO_TIERS, allowed=_POSITIVE),
    _inert("remote.log.manager.expiration.thread.pool.size", Kind.INT, 10, _NO_TIERS, allowed=_POSITIVE),
    _inert(
        "remote.log.manager.fetch.max.bytes.per.second", Kind.LONG, LONG_MAX, _NO_TIERS, allowed=_POSITIVE
    ),
    _inert("remote.log.reader.threads", Kind.INT, 10, _NO_TIERS, allowed=_POSITIVE),
    _inert("sasl.kerberos.kinit.cmd", Kind.STRING, "/usr/bin/kinit", _NO_KERBEROS, per_broker=True),
    _inert("sasl.kerberos.min.time.before.relogin", Kind.LONG, 60_000, _NO_KERBEROS, per_broker=True),
    _inert("sasl.kerberos.principal.to.local.rules", Kind.LIST, ("DEFAULT",), _NO_KERBEROS, per_broker=True),
    _inert("sasl.kerberos.service.name", Kind.STRING, None, _NO_KERBEROS, nullable=True, per_broker=True),
    _inert("sasl.kerberos.ticket.renew.jitter", Kind.DOUBLE, 0.05, _NO_KERBEROS, per_broker=True),
    _inert("sasl.kerberos.ticket.renew.window.factor", Kind.DOUBLE, 0.8, _NO_KERBEROS, per_broker=True),
    _inert(
        "sasl.login.refresh.buffer.seconds",
        Kind.SHORT,
        300,
        _NO_OAUTH,
        allowed=between(0, 3600),
        per_broker=True,
    ),
    _inert(
        "sasl.login.refresh.min.period.seconds",
        Kind.SHORT,
        60,
        _NO_OAUTH,
        allowed=between(0, 900),
        per_broker=True,
    ),
    _inert(
        "sasl.login.refresh.window.factor",
        Kind.DOUBLE,
        0.8,
        _NO_OAUTH,
        allowed=between(0.5, 1.0),
        per_broker=True,
    ),
    _inert(
        "sasl.login.refresh.window.jitter",
        Kind.DOUBLE,
        0.05,
        _NO_OAUTH,
        allowed=between(0.0, 0.25),
        per_broker=True,
    ),
)

INERT_SETTINGS: Mapping[str, Setting] = {declared.key: declared for declared in _SETTINGS}
"""Settings without effect by key."""
