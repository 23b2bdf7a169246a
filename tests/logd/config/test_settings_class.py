"""Classes of settings, whatever fields they declare."""

from __future__ import annotations

import pytest

from logd.config.settings import Settings, field


class Kettle(Settings):
    litres: float = field(1.5)
    is_on: bool = field(False)


class TeaKettle(Kettle):
    leaves: tuple[str, ...] = field(())


def test_values_are_as_given_or_as_declared() -> None:
    kettle = TeaKettle(is_on=True, leaves=("assam",))
    assert (kettle.litres, kettle.is_on, kettle.leaves) == (1.5, True, ("assam",))
    assert repr(kettle) == "TeaKettle(litres=1.5, is_on=True, leaves=('assam',))"


def test_equal_where_all_values_are() -> None:
    assert TeaKettle(litres=2) == TeaKettle(litres=2)
    assert hash(TeaKettle(litres=2)) == hash(TeaKettle(litres=2))
    assert TeaKettle(litres=2) != TeaKettle(litres=3)
    assert Kettle() != TeaKettle()


def test_replaced_leaves_the_first_one_as_it_was() -> None:
    kettle = Kettle(litres=2)
    assert kettle.replaced(is_on=True) == Kettle(litres=2, is_on=True)
    assert kettle == Kettle(litres=2)


def test_nothing_can_be_changed() -> None:
    kettle = Kettle()
    with pytest.raises(AttributeError, match="replaced"):
        kettle.litres = 3  # type: ignore[misc]
    with pytest.raises(AttributeError, match="replaced"):
        del kettle.litres
    with pytest.raises(AttributeError):
        kettle.colour = "red"


def test_what_is_not_declared_is_refused() -> None:
    with pytest.raises(TypeError, match="Kettle has no colour, whistle"):
        Kettle(whistle=True, colour="red")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Kettle has no colour"):
        Kettle().replaced(colour="red")
