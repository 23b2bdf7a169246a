"""The keyword options that methods of streams take as ``**options``."""

import inspect
from typing import Any

import pytest

from streams import KStream, KTable, StreamsBuilder


@pytest.fixture
def stream() -> KStream[Any, Any]:
    return StreamsBuilder().stream("t", key_serde=str, value_serde=str)


@pytest.mark.parametrize(
    ("method", "arguments", "options"),
    [
        ("to", ("out",), {"key_serdes": str}),
        ("group_by_key", (), {"materialized": "s"}),
        ("repartition", (), {"partition_count": 3}),
        ("map_values_async", (str,), {"max_inflight": 3}),
        ("map_values_batch", (len,), {"max_record": 3}),
        ("to_table", (), {"storage": "s"}),
        ("process", (object,), {"store": "s"}),
    ],
)
def test_an_unknown_option_is_refused_with_those_that_exist(
    stream: KStream[Any, Any], method: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    (unknown,) = options
    with pytest.raises(
        TypeError,
        match=f"KStream.{method}.. got an unexpected keyword argument '{unknown}'; its options are ",
    ):
        getattr(stream, method)(*arguments, **options)


def test_a_required_option_that_is_left_out_is_refused(stream: KStream[Any, Any]) -> None:
    with pytest.raises(TypeError, match="missing a required keyword-only argument: 'limit'"):
        stream.fill_windows(lambda window: None)  # type: ignore[call-overload]


@pytest.mark.parametrize("kind", [KStream, KTable, StreamsBuilder])
def test_no_signature_hides_its_options(kind: type) -> None:
    """A method's help shows each option by its name, with its default."""
    methods = [each for name, each in vars(kind).items() if callable(each) and not name.startswith("_")]
    assert methods
    for method in methods:
        parameters = inspect.signature(method).parameters.values()
        assert all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters), method


def test_help_shows_an_option_with_its_default() -> None:
    signature = str(inspect.signature(KStream.map_values_batch))
    assert "max_records: 'int' = 1000, as_: 'BatchForm' = 'list', name: 'str | None' = None" in signature
