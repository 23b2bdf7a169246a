"""From a properties file and overrides to ``BrokerConfig``, with notes on what was odd about the keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from kafka_client.errors import ConfigError
from kafka_client.java_properties import parse_overrides, read_properties
from logd.config.broker import BROKER_SETTINGS, ZOOKEEPER_CONNECT, BrokerConfig
from logd.config.inert import INERT_SETTINGS
from logd.config.known import REFUSED_PREFIXES, has_no_effect
from logd.config.renamed import CLUSTER_PREVIEW, NOTES, with_todays_names
from logd.config.replication import REPLICATION_SETTINGS
from logd.config.zookeeper import ZOOKEEPER_SETTINGS


class Loaded(NamedTuple):
    """The settings; notes on old names and keys without effect; warnings for keys nobody knows."""

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
    """Settings from keys as given, old names included; ConfigError for a value that is not allowed."""
    notes: list[str] = []
    warnings: list[str] = []
    today = with_todays_names(properties, notes)
    config = BrokerConfig.of(today)
    is_among_others = config.is_among_others
    _check_preview(today.get(CLUSTER_PREVIEW), is_among_others=is_among_others)
    for key, value in today.items():
        if key in REPLICATION_SETTINGS and not is_among_others:
            notes.append(f"{key}: no effect, this broker coordinates itself")
        if key in BROKER_SETTINGS or key in NOTES:
            continue
        if (inert := INERT_SETTINGS.get(key)) is not None:
            inert.parse(value)
            notes.append(f"{key}: {inert.doc}")
        elif (declared := ZOOKEEPER_SETTINGS.get(key)) is not None:
            declared.parse(value)
            if not is_among_others and key != ZOOKEEPER_CONNECT:
                notes.append(f"{key}: no effect without {ZOOKEEPER_CONNECT}, this broker coordinates itself")
        elif key.startswith(REFUSED_PREFIXES):
            raise ConfigError(
                key, value, "nothing: this broker serves PLAINTEXT listeners without authorization"
            )
        elif has_no_effect(key) or key.startswith("zookeeper."):
            notes.append(f"{key}: no effect in logd")
        else:
            warnings.append(unknown_setting(key))
    wanted = config.topic_defaults.min_insync_replicas
    if wanted > 1 and not is_among_others:
        notes.append(
            f"min.insync.replicas={wanted}: no effect, a standalone broker has one replica of each partition"
        )
    return Loaded(config, notes, warnings)


def _check_preview(value: str | None, *, is_among_others: bool) -> None:
    """ConfigError where the old key says otherwise than `zookeeper.connect`: which of them is meant nobody
    knows, and a broker that is alone by mistake acknowledges what is on one disk.
    """
    if value is None or value.strip().lower() == ("true" if is_among_others else "false"):
        return
    if is_among_others:
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
    """What to say of a key that nobody declares: the nearest one that is."""
    import difflib  # only where a key is unknown: start-up is measured

    nearest = difflib.get_close_matches(key, BROKER_SETTINGS, n=1, cutoff=0.5)
    return f"unknown setting {key}" + (f"; did you mean {nearest[0]}?" if nearest else "")
