"""Changes and descriptions of client quotas, compared with Kafka's controller over random requests."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from logd.metadata.client_quotas import CLIENT_ID, CLIENT_KEYS, IP, IP_KEYS, USER, entity_at, path_of
from logd.metadata.controller.client_quotas import (
    NAME_LENGTH_MAX,
    Alteration,
    Component,
    alter_quotas,
    describe_quotas,
)
from logd.metadata.differences import differences
from logd.metadata.image import ClusterImage, entity_configs, user_configs
from millstream.kafka_tools.java.java_numbers import shown_double
from tests.support import java

SEED = 546
ALTERATIONS = 400
DESCRIPTIONS = 300
CREDENTIAL = {"SCRAM-SHA-256": "salt=…"}

Names = tuple[tuple[str, str | None], ...]
Ops = tuple[tuple[str, float | None], ...]


def random_names(source: random.Random) -> Names:
    types = source.choices(
        ((USER,), (CLIENT_ID,), (USER, CLIENT_ID), (IP,), (USER, IP), (), ("thing",)), (4, 4, 6, 4, 1, 1, 1)
    )[0]
    names = {IP: ("10.0.0.1", "fd00::1", "1:2", None, ""), "thing": ("x",)}
    return tuple((type, source.choice(names.get(type, ("a", "b", "/~é", None, None, "")))) for type in types)


def random_ops(source: random.Random, names: Names) -> Ops:
    values = (None, 1.0, 12.5, 0.25, 0.0, -1.0, 5e9, 1e20, 1024.0)
    if source.random() < 0.4 or IP in dict(names):
        key = source.choice((*sorted(CLIENT_KEYS), *IP_KEYS, *IP_KEYS, "retention.ms"))
        return ((key, source.choice(values)),)
    # One of the two is good: of several errors, Kafka says one in the order of a hash map.
    one, other = source.sample(sorted(CLIENT_KEYS), 2)
    return (one, source.choice(values)), (other, source.choice((None, 1.0, 1024.0)))


def random_components(source: random.Random) -> list[Component]:
    types = source.sample((USER, CLIENT_ID, IP), source.choices((0, 1, 2), (1, 4, 4))[0])
    if source.random() < 0.1:
        types += [source.choice((USER, "", "thing"))]
    return [
        Component(type=type, match_type=match, match=source.choice((*right, *right, None, "a")))
        for type in types
        for match, right in [
            source.choice(((0, ("a", "b", "10.0.0.1")), (1, (None,)), (2, (None,)), (3, ("a",))))
        ]
    ]


def shown(value: object) -> str:
    return "~" if value is None else str(value)


def error_text(error: KafkaError | None) -> str:
    return "NONE" if error is None else f"{ErrorCode(error.code).name} {error.message}"


def altered(image: ClusterImage, names: Names, ops: Ops) -> str:
    decision = alter_quotas(image, [Alteration(names=names, ops=ops)])
    for change in decision.changes:
        image.apply(change)
    return error_text(decision.answer[0])


def described(image: ClusterImage, components: Sequence[Component], strict: bool) -> str:
    try:
        rows = describe_quotas(image, components, strict=strict)
    except KafkaError as error:
        return error_text(error)
    return "; ".join(
        sorted(
            ",".join(sorted(f"{type}={shown(name)}" for type, name in entity))
            + " "
            + ",".join(f"{key}={shown_double(quotas[key])}" for key in sorted(quotas))
            for entity, quotas in rows
        )
    )


def exchanges(source: random.Random, image: ClusterImage) -> Iterator[tuple[str, str]]:
    """Yield lines for QuotaRules.java, each with our answer."""
    for _ in range(ALTERATIONS):
        names = random_names(source)
        ops = random_ops(source, names)
        yield (
            f"alter\t{','.join(f'{type}={shown(name)}' for type, name in names)}"
            f"\t{','.join(f'{key}={shown(value)}' for key, value in ops)}",
            altered(image, names, ops),
        )
    for _ in range(DESCRIPTIONS):
        components, strict = random_components(source), source.random() < 0.5
        yield (
            f"describe\t{strict}\t"
            + ",".join(f"{each.type}:{each.match_type}:{shown(each.match)}" for each in components),
            described(image, components, strict),
        )


@java.needs_jar("kafka-metadata")
def test_the_same_answers_as_kafkas_controller() -> None:
    lines = list(exchanges(random.Random(SEED), ClusterImage()))
    answers = java.run_program("QuotaRules", stdin="".join(f"{line}\n" for line, _ in lines)).splitlines()
    differing = [
        (line, ours, javas) for (line, ours), javas in zip(lines, answers, strict=True) if ours != javas
    ]
    assert differing == []
    assert len(set(answers)) > 40


@pytest.mark.parametrize(
    ("names", "path"),
    [
        (((USER, "alice"),), "users/alice"),
        (((USER, None),), "users/<default>"),
        (((USER, "CN=a/b"), (CLIENT_ID, "c 1")), "users/CN%3Da%2Fb/clients/c%201"),
        (((USER, None), (CLIENT_ID, None)), "users/<default>/clients/<default>"),
        (((CLIENT_ID, "c"),), "clients/c"),
        (((IP, "10.0.0.1"),), "ips/10.0.0.1"),
        (((IP, None),), "ips/<default>"),
    ],
)
def test_paths_below_config(names: Names, path: str) -> None:
    assert path_of(names) == path
    assert entity_at(path) == names


def test_paths_of_no_entity() -> None:
    assert [entity_at(path) for path in ("topics/t", "users", "users/a/topics/t", "")] == [None] * 4


def test_a_users_credentials_stay() -> None:
    image = ClusterImage.of([user_configs("alice", CREDENTIAL)])
    assert altered(image, ((USER, "alice"),), (("producer_byte_rate", 1024.0),)) == "NONE"
    assert image.user_configs == {"alice": CREDENTIAL | {"producer_byte_rate": "1024"}}
    assert altered(image, ((USER, "alice"),), (("producer_byte_rate", None),)) == "NONE"
    assert image.user_configs == {"alice": CREDENTIAL}


def test_what_only_ours_refuses() -> None:
    image = ClusterImage()
    long = "u" * (NAME_LENGTH_MAX + 1)
    rate = (("request_percentage", 1.0),)
    assert altered(image, ((USER, long),), rate).startswith("INVALID_REQUEST user of 1001 characters")
    assert "must be finite" in altered(image, ((USER, "a"),), (("request_percentage", float("inf")),))
    assert "duplicate entity entry user" in altered(image, ((USER, "a"), (USER, "b")), rate)
    twice = [Alteration(names=((USER, "a"),), ops=rate)] * 2
    assert [error_text(each) for each in alter_quotas(image, twice).answer] == [
        "NONE",
        "INVALID_REQUEST Ignoring duplicate entity ClientQuotaEntity(entries={user=a})",
    ]


def test_what_is_stored_already_is_no_change() -> None:
    image = ClusterImage()
    ops: Ops = (("producer_byte_rate", 5.0),)
    assert altered(image, ((CLIENT_ID, "c"),), ops) == "NONE"
    assert alter_quotas(image, [Alteration(names=((CLIENT_ID, "c"),), ops=ops)]).changes == []


def test_images_with_quotas_are_copied_and_compared() -> None:
    quotas = entity_configs("users/a/clients/<default>", {"request_percentage": "50.0"})
    image = ClusterImage.of([quotas])
    assert quotas in image.as_changes()
    assert differences(ClusterImage(), image) == [quotas]
    assert differences(image, ClusterImage()) == [entity_configs("users/a/clients/<default>", {})]
    image.apply(entity_configs("users/a/clients/<default>", {}))
    assert image.entity_configs == {}
