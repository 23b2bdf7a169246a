"""Transforms for the tests, and the dead letters that fake producers have got."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec

from connect.api import RetriableError, SinkRecord, Transform

PREFIX = "__connect.errors."


class Route(Transform):
    """Sends a record elsewhere: another topic, partition and offset."""

    def apply(self, record):
        return msgspec.structs.replace(record, topic=f"{record.topic}-routed", partition=7)


class Forget(Transform):
    """Makes records of its own, without origin."""

    def apply(self, record):
        return SinkRecord("forgotten", 9, 99, value=record.value)


class Evens(Transform):
    """Leaves out odd numbers, and fails on 13."""

    def apply(self, record):
        if record.value == 13:
            raise ValueError("unlucky")
        return None if record.value % 2 else record


class Twice(Transform):
    """Makes two records of one."""

    def apply(self, record):
        return [record, msgspec.structs.replace(record, value=-record.value)]


class Moody(Transform):
    """Fails on 1, as often as `failures` says, with an error that is worth another try."""

    failures = 0

    def apply(self, record):
        if record.value == 1 and Moody.failures:
            Moody.failures -= 1
            raise RetriableError("not now")
        return record


def transforms(*classes):
    """Return the config of a chain of these classes."""
    config = {"transforms": ",".join(c.__name__.lower() for c in classes)}
    for each in classes:
        config[f"transforms.{each.__name__.lower()}.type"] = f"{__name__}:{each.__name__}"
    return config


DEAD = {
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "dead",
    "errors.deadletterqueue.topic.replication.factor": "1",
    "errors.deadletterqueue.context.headers.enable": "true",
}


def letters(producer, topic="dead"):
    """Return the dead letters that a fake producer has got: key, value, headers and context."""
    dead = []
    for name, _, records in producer.sent:
        for timestamp, key, value, headers in records if name == topic else ():
            context = {n.removeprefix(PREFIX): v for n, v in headers if n.startswith(PREFIX)}
            own = tuple(header for header in headers if not header[0].startswith(PREFIX))
            dead.append(
                SimpleNamespace(timestamp=timestamp, key=key, value=value, headers=own, context=context)
            )
    return dead
