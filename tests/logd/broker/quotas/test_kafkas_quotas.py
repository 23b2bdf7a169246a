"""Limits and waits, compared with Kafka's quota managers over random sequences."""

from __future__ import annotations

import random
from collections.abc import Iterator

from kafka_client.errors import KafkaError
from logd.broker.quotas.client_quotas import ClientQuotas
from logd.metadata.client_quotas import CLIENT_ID, CLIENT_KEYS, USER, configs_change, entity_of
from logd.metadata.image import ClusterImage
from tests.support import java

SEED = 20_261_130
ROUNDS = 12
RECORDS = 40
BEGIN_MS = 10_000_000
"""Kafka's buckets are full once their clock is past their burst."""
USERS = ("alice", "bob", "carol")
CLIENTS = ("c1", "c2")
NO_LIMIT = 9.223372036854776e18


class Clock:
    def __init__(self) -> None:
        self.ms = BEGIN_MS

    def seconds(self) -> float:
        return self.ms / 1000


def limits(source: random.Random, prefix: str) -> Iterator[tuple[str, str, float]]:
    """Yield user, client id and limit; `-` is no such entity, `*` the default one."""
    users = ("-", "*", *(prefix + user for user in USERS[:2]))
    clients = ("-", "*", *(prefix + client for client in CLIENTS[:1]))
    places = [(user, client) for user in users for client in clients if (user, client) != ("-", "-")]
    # A default holds for all rounds, since Kafka's managers stay the same.
    named = [place for place in places if place[0].startswith(prefix)]
    for user, client in source.sample(named, source.randint(1, len(named))):
        yield user, client, float(source.choice((1, 7, 100, 2_500)))


def quotas_with(rows: list[tuple[str, str, float]], clock: Clock) -> ClientQuotas:
    image = ClusterImage()
    names = {"*": None}
    for user, client, limit in rows:
        entity = entity_of(
            {type: names.get(name, name) for type, name in ((USER, user), (CLIENT_ID, client)) if name != "-"}
        )
        image.apply(configs_change(entity, dict.fromkeys(CLIENT_KEYS, str(limit))))
    return ClientQuotas(image, clock.seconds)


def recorded(quotas: ClientQuotas, kind: str, user: str, client: str, value: float) -> str:
    if kind == "PRODUCE":
        return str(quotas.produced(user, client, int(value)))
    if kind == "REQUEST":
        return str(quotas.served(user, client, value / 1e9))
    try:
        quotas.check_mutations(user, client)
        quotas.mutated(user, client, int(value))
    except KafkaError:
        return f"exceeded {quotas.mutation_throttle_ms(user, client)}"
    return "0"


def of_round(source: random.Random, number: int, clock: Clock) -> Iterator[tuple[str, str]]:
    """Yield the lines of one round, each with our answer; "" for a line without one."""
    prefix = f"r{number}"
    rows = list(limits(source, prefix))
    for user, client, limit in rows:
        yield f"set\t{user}\t{client}\t{limit}", ""
    quotas = quotas_with(rows, clock)
    for _ in range(RECORDS):
        user = prefix + source.choice(USERS)
        client = prefix + source.choice(CLIENTS) if source.random() < 0.8 else ""
        limit = quotas.limits.find("producer_byte_rate", user, client)
        yield f"quota\t{user}\t{client}", str(NO_LIMIT if limit is None else limit.value)
        clock.ms += source.choice((0, 1, 30, 400, 999, 1_000, 3_500, 12_000, 40_000))
        kind = source.choice(("PRODUCE", "REQUEST", "CONTROLLER_MUTATION"))
        scale = 1e7 if kind == "REQUEST" else 1
        value = source.choice((0, 1, 50, 900, 20_000)) * scale
        yield (
            f"{kind}\t{user}\t{client}\t{value}\t{clock.ms}",
            recorded(quotas, kind, user, client, value),
        )


@java.needs_jar("kafka-server")
def test_the_same_waits() -> None:
    source, clock = random.Random(SEED), Clock()
    lines = [line for number in range(ROUNDS) for line in of_round(source, number, clock)]
    expected = [(line, answer) for line, answer in lines if answer]
    answers = java.run_program("Quotas", stdin="\n".join(line for line, _ in lines)).splitlines()
    assert len(answers) == len(expected)
    differing = [
        (line, ours, javas)
        for (line, ours), javas in zip(expected, answers, strict=True)
        if not _same(ours, javas)
    ]
    assert differing == []
    assert any(int(answer) > 1_000 for answer in answers if answer.isdigit())
    assert any(answer.startswith("exceeded") for answer in answers)


def _same(ours: str, javas: str) -> bool:
    """Return True for the same answer, up to a rounded millisecond."""
    if ours == javas:
        return True
    word, _, number = ours.rpartition(" ")
    javas_word, _, javas_number = javas.rpartition(" ")
    return word == javas_word and abs(float(number) - float(javas_number)) <= 1
