"""Kafka's MirrorMakerConfig gives the clients of a flow the same keys as ours, from random files."""

from __future__ import annotations

import random

from mirror.client_keys import ROLES, ClientKeys, Side
from mirror.config import _Flow
from mirror.resolved_properties import ResolvedProperties
from tests.support import java

SEED = 31
SIDES: dict[Side, str] = {"source": "a", "target": "b"}
BASE = {"clusters": "a,b", "a.bootstrap.servers": "a:1", "b.bootstrap.servers": "b:1", "a->b.enabled": "true"}
CLIENT_KEYS = ("bootstrap.servers", "security.protocol", "ssl.truststore.password")
OF_ROLES = {
    "consumer": (*CLIENT_KEYS, "auto.offset.reset", "request.timeout.ms"),
    "producer": (*CLIENT_KEYS, "linger.ms", "request.timeout.ms"),
    "admin": (*CLIENT_KEYS, "request.timeout.ms"),
}
OF_CONNECTOR = {
    "topics": ("x", "y,z"),
    "topics.exclude": ("x", "y"),
    "replication.policy.separator": ("__", "-"),
    "replication.factor": ("1", "3"),
    "refresh.topics.interval.seconds": ("5", "60"),
    "offset-syncs.topic.location": ("source", "target"),
}
VALUES = {
    "bootstrap.servers": ("h:1", "h:2", "h:3", "h:4"),
    "security.protocol": ("SSL", "PLAINTEXT", "SASL_SSL", "SASL_PLAINTEXT"),
    "ssl.truststore.password": ("one", "two", "${none:path:key}", "four"),
    "auto.offset.reset": ("earliest", "latest"),
    "request.timeout.ms": ("1000", "2000", "3000"),
    "linger.ms": ("1", "2", "3"),
}


def vocabulary() -> dict[str, tuple[str, ...]]:
    """Return the keys that random files have, with their values."""
    keys = dict.fromkeys(CLIENT_KEYS) | {f"{alias}.{key}": None for alias in "ab" for key in CLIENT_KEYS}
    keys |= {f"a->b.{side}.cluster.{key}": None for side in SIDES for key in CLIENT_KEYS}
    for role, names in OF_ROLES.items():
        prefixes = (f"a.{role}.", f"b.{role}.", f"a->b.{role}.", *(f"a->b.{side}.{role}." for side in SIDES))
        keys |= {prefix + name: None for prefix in prefixes for name in names}
    values = {key: next(v for name, v in VALUES.items() if key.endswith(name)) for key in keys}
    return values | OF_CONNECTOR | {f"a->b.{key}": choices for key, choices in OF_CONNECTOR.items()}


def random_file(source: random.Random) -> dict[str, str]:
    words = vocabulary()
    chosen = source.sample(sorted(words), source.choice((2, 10, 40)))
    return BASE | {key: source.choice(words[key]) for key in chosen}


def ours(file: dict[str, str]) -> list[str]:
    properties = ResolvedProperties.by_own_providers(file)
    words = []
    for side, alias in SIDES.items():
        keys = ClientKeys(properties=properties, flow="a->b.", side=side, alias=alias)
        for role in ROLES:
            values = dict(keys.of_role(role).values)
            if role == "consumer":
                values.setdefault("auto.offset.reset", "earliest")
            words += [f"{side}.{role}.{key}={values[key]}" for key in OF_ROLES[role] if key in values]
    flow = _Flow(properties, "a", "b")
    words += [f"{key}={value}" for key in OF_CONNECTOR if (value := flow.text(key, ""))]
    return sorted(words)


@java.needs_jar("connect-mirror")
def test_java_gives_each_client_the_same_keys() -> None:
    source = random.Random(SEED)
    files = [random_file(source) for _ in range(300)]
    lines = ["\t".join(f"{key}={value}" for key, value in file.items()) for file in files]
    answers = java.run_program("MirrorConfigs", stdin="\n".join(lines)).splitlines()
    for file, answer in zip(files, answers, strict=True):
        mine, theirs = ours(file), answer.split("\t")
        assert mine == theirs, (set(mine) ^ set(theirs), file)
