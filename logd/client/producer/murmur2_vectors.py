"""Kafka's 32-bit murmur2 of many keys at once, with numpy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np

from logd.client.producer.murmur2 import SEED, murmur2

Words: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.uint32]]"

_M, _13, _15, _24 = np.uint32(0x5BD1E995), np.uint32(13), np.uint32(15), np.uint32(24)
_SAME_LENGTH_MIN = 20
"""Of fewer keys of a length each is hashed alone, which is sooner done."""
_LENGTH_MAX = 64


def murmur2_many(keys: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    """The keys, in any order, each with its `murmur2`."""
    by_length: defaultdict[int, list[bytes]] = defaultdict(list)
    for key in keys:
        by_length[len(key)].append(key)
    for length, same in by_length.items():
        if len(same) < _SAME_LENGTH_MIN or length > _LENGTH_MAX:
            yield from ((key, murmur2(key)) for key in same)
        else:
            yield from zip(same, _hashes(same, length).tolist(), strict=True)


def _hashes(keys: list[bytes], length: int) -> Words:
    """Those of keys of one length; numbers of 32 bits drop what is beyond by themselves."""
    count, words = len(keys), length >> 2
    padded = np.zeros((count, 4 * (words + 1)), np.uint8)
    padded[:, :length] = np.frombuffer(b"".join(keys), np.uint8).reshape(count, length)
    table = padded.view("<u4")
    h = np.full(count, SEED ^ length, np.uint32)
    for n in range(words):
        k = table[:, n] * _M
        h = h * _M ^ (k ^ k >> _24) * _M
    if length & 3:
        h = (h ^ table[:, words]) * _M
    h = (h ^ h >> _13) * _M
    return h ^ h >> _15
