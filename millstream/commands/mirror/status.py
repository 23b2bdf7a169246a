"""`millstream mirror status`: asks a running mirror over HTTP, and shows its flows and partitions."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka_client.http.access import USERS_KEY, client_tls
from kafka_client.http.client import HttpClient
from kafka_client.http.passwords import authorization, read_passwords
from kafka_client.java_properties import read_properties
from millstream.terminal.output import Format, Row
from millstream.terminal.session import Local
from millstream.terminal.status import NotFound, Unreachable, UsageError
from mirror.config import HTTP_LISTENER, HTTP_PREFIX, parse_http_listener
from mirror.flow_status import COPYING, STATUS_PATH
from mirror.resolved_properties import ResolvedProperties

TIMEOUT_SECONDS = 10.0
WILDCARDS = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
"""Listeners on all addresses, and where to ask them."""
PARTITION_COLUMNS = (
    "topic",
    "partition",
    "state",
    "position",
    "lag_records",
    "lag_seconds",
    "rpo_seconds",
    "still_seconds",
    "error",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusEndpoint:
    """The address of a mirror's status, and what its HTTP listener asks of clients."""

    url: str
    tls: ssl.SSLContext | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def endpoint_of(config: Path | None, address: str | None) -> StatusEndpoint:
    """Return where the mirror of a properties file serves its status. Raises UsageError if nobody says.

    Trust and user are those of the file (`http.ssl.*`, `http.basic.auth.users.file`). Raises ConfigError for
    settings that cannot be used.
    """
    properties = {} if config is None else read_properties(config)
    listener = address or parse_http_listener(properties)
    if not listener:
        raise UsageError(
            f"set {HTTP_LISTENER} in the mirror's properties, or give --http HOST:PORT as to `run`"
        )
    host, _, port = listener.rpartition(":")
    resolved = ResolvedProperties.by_own_providers(properties)
    tls = client_tls(resolved, HTTP_PREFIX)
    scheme = "http" if tls is None else "https"
    return StatusEndpoint(
        url=f"{scheme}://{WILDCARDS.get(host, host)}:{port}{STATUS_PATH}", tls=tls, headers=_user(resolved)
    )


def _user(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return the header with the first user of the mirror, or none."""
    key = HTTP_PREFIX + USERS_KEY
    if key not in properties:
        return {}
    user, password = next(iter(read_passwords(properties[key], key).items()))
    return {"authorization": authorization(user, password)}


def ask(endpoint: StatusEndpoint, flow: str | None) -> list[Row]:
    """Return the flows of the mirror at `endpoint`, or the one named `flow`.

    Raises Unreachable if no mirror answers there, NotFound if it has no such flow.
    """
    url = endpoint.url
    try:
        answer = HttpClient(timeout=TIMEOUT_SECONDS, tls=endpoint.tls).request(
            "GET", url, headers=endpoint.headers
        )
        if answer.status == 401:
            raise ValueError(f"it serves its users alone: give its properties, with {HTTP_PREFIX}{USERS_KEY}")
        if answer.status != 200:
            raise ValueError(f"HTTP status {answer.status}")
        flows: list[Row] = json.loads(answer.body)["flows"]
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException) as e:
        raise Unreachable(f"no mirror answers at {url}: {e or type(e).__name__}; is `mirror run` up?") from e
    chosen = [each for each in flows if flow in (None, each["flow"])]
    if not chosen:
        raise NotFound(f"no flow {flow}: the mirror has {', '.join(each['flow'] for each in flows)}")
    return chosen


def show_flows(local: Local, flows: Sequence[Row]) -> None:
    """Print the flows, as a line and a table each or as JSON's objects."""
    now = time.time()
    if local.form is Format.TABLE:
        for flow in flows:
            print(_flow_line(flow))
            if flow["partitions"]:
                local.show((_partition_row(each, now) for each in flow["partitions"]), PARTITION_COLUMNS)
    elif local.form is Format.PLAIN:
        rows = (
            {"flow": flow["flow"], **_partition_row(p, now)} for flow in flows for p in flow["partitions"]
        )
        local.show(rows, ("flow", *PARTITION_COLUMNS))
    else:
        local.show(flows, ("flow", "state", "error", "rpo_seconds"))


def problems(flows: Sequence[Row]) -> list[str]:
    """Return a phrase for each flow that does not run, and each partition that is not copied or unknown."""
    phrases = []
    for flow in flows:
        if flow["state"] != "running":
            phrases.append(f"{flow['flow']} is {flow['state']}")
        phrases += [
            f"{flow['flow']}: {each['topic']}-{each['partition']} is "
            + (each["state"] if each["state"] != COPYING else "of unknown lag")
            for each in flow["partitions"]
            if each["state"] != COPYING or each["lag_records"] is None
        ]
    return phrases


def _flow_line(flow: Row) -> str:
    rpo = flow["rpo_seconds"]
    lost = "unknown" if rpo is None else f"{rpo:,.1f} s"
    error = f": {flow['error']}" if flow["error"] else ""
    return f"{flow['flow']}: {flow['state']}{error}; a failover now loses at most: {lost}"


def _partition_row(partition: Mapping[str, Any], now: float) -> Row:
    since = partition["standing_since"]
    return {
        **{name: _tenths(value) for name, value in partition.items() if name != "standing_since"},
        "still_seconds": None if since is None else _tenths(max(now - since, 0.0)),
    }


def _tenths(value: Any) -> Any:
    return round(value, 1) if isinstance(value, float) else value
