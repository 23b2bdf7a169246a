"""The broker's settings from a properties file and overrides, with notes on old and unknown keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from kafka_client.errors import ConfigError
from kafka_client.java_properties import parse_overrides, read_properties
from logd.config.broker import BROKER_SETTINGS, ZOOKEEPER_CONNECT, BrokerConfig
from logd.config.inert import INERT_SETTINGS
from logd.config.known import HTTP_PREFIX, REFUSED_PREFIXES, SECURITY_PREFIXES, has_no_effect, is_refused
from logd.config.renamed import CLUSTER_PREVIEW, NOTES, with_todays_names
from logd.config.replication import REPLICATION_SETTINGS
from logd.config.zookeeper import ZOOKEEPER_SETTINGS


class Loaded(NamedTuple):
    """The settings, notes on old names and keys without effect, and warnings about unknown keys."""

    config: BrokerConfig
    notes: list[str]
    warnings: list[str]


def load_config(path: Path | None, overrides: Iterable[str] = ()) -> Loaded:
    """Read a ``server.properties`` file, if any, put ``key=value`` overrides on top and check everything."""
    properties: dict[str, str] = {}
    if path is not None:
        properties = read_properties(path, "--config")
    properties.update(parse_overrides(overrides))
    return from_properties(properties)


def from_properties(properties: Mapping[str, str]) -> Loaded:
    """Load settings from ``properties``, old names included; raises ConfigError for a value not allowed."""
    notes: list[str] = []
    warnings: list[str] = []
    today = with_todays_names(properties, notes)
    config = BrokerConfig.of(today)
    is_clustered = config.is_clustered
    _check_preview(today.get(CLUSTER_PREVIEW), is_clustered=is_clustered)
    for key, value in today.items():
        if key in REPLICATION_SETTINGS and not is_clustered:
            notes.append(f"{key}: no effect, this broker coordinates itself")
        if key in BROKER_SETTINGS or key in NOTES:
            continue
        if (inert := INERT_SETTINGS.get(key)) is not None:
            inert.parse(value)
            notes.append(f"{key}: {inert.doc}")
        elif (declared := ZOOKEEPER_SETTINGS.get(key)) is not None:
            declared.parse(value)
            if not is_clustered and key != ZOOKEEPER_CONNECT:
                notes.append(f"{key}: no effect without {ZOOKEEPER_CONNECT}, this broker coordinates itself")
        elif key.startswith(SECURITY_PREFIXES):
            from logd.config.security_keys import check_security_key  # only where a key is set

            check_security_key(key)
        elif key.startswith((f"{HTTP_PREFIX}ssl.", f"{HTTP_PREFIX}basic.auth.")):
            from kafka_client.http.access import values_of  # only where a key is set

            values_of({key: value}, HTTP_PREFIX)
        elif is_refused(key, value):
            raise ConfigError(
                key,
                "[hidden]" if "password" in key or "jaas" in key else value,
                "nothing: this broker has no such protection; take it out, and make sure that nobody relies "
                "on it",
            )
        elif has_no_effect(key) or key.startswith((*REFUSED_PREFIXES, "zookeeper.")):
            notes.append(f"{key}: no effect in logd")
        else:
            warnings.append(unknown_setting(key))
    min_isr = config.topic_defaults.min_insync_replicas
    if min_isr > 1 and not is_clustered:
        notes.append(
            f"min.insync.replicas={min_isr}: no effect, a standalone broker has one replica of each partition"
        )
    return Loaded(config, notes, warnings)


def _check_preview(value: str | None, *, is_clustered: bool) -> None:
    """Check the old key CLUSTER_PREVIEW against `zookeeper.connect`; raises ConfigError if they disagree.

    A broker that is standalone by mistake would acknowledge records that are on one disk only.
    """
    if value is None or value.strip().lower() == ("true" if is_clustered else "false"):
        return
    if is_clustered:
        allowed = (
            f"{ZOOKEEPER_CONNECT} has this broker join a cluster: take this key out, or {ZOOKEEPER_CONNECT} "
            "for a broker by itself"
        )
    else:
        allowed = (
            f"no cluster is named: give {ZOOKEEPER_CONNECT}, or take this key out for a broker by itself"
        )
    raise ConfigError(CLUSTER_PREVIEW, value, allowed)


def unknown_setting(key: str) -> str:
    """Return the warning about an undeclared key, with the nearest declared one."""
    import difflib  # imported for unknown keys only: imports at start are limited

    nearest = difflib.get_close_matches(key, BROKER_SETTINGS, n=1, cutoff=0.5)
    return f"unknown setting {key}" + (f"; did you mean {nearest[0]}?" if nearest else "")
