"""The search for the next offset that a broker can read."""

from __future__ import annotations

import asyncio

import pytest

from kafka_client.fetcher.damage import first_true_after


@pytest.mark.parametrize("low", [0, 1, 12345678901])
@pytest.mark.parametrize("distance", [1, 2, 3, 4, 5, 7, 8, 9, 1000, 2**20 + 1])
def test_the_first_is_found_in_few_steps(low: int, distance: int) -> None:
    tested: list[int] = []

    async def test(number: int) -> bool:
        tested.append(number)
        return number >= low + distance

    assert asyncio.run(first_true_after(low, test)) == low + distance
    assert len(tested) <= 2 * distance.bit_length() and min(tested) > low


def test_of_two_regions_the_boundary_of_one_is_found() -> None:
    async def test(number: int) -> bool:
        return 3 <= number < 50 or number >= 90

    assert asyncio.run(first_true_after(0, test)) == 3
