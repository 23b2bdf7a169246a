"""How arguments are read: joptsimple's rules."""

from __future__ import annotations

import pytest

from millstream.kafka_tools.java.java_errors import JavaError
from millstream.kafka_tools.options.arguments import Ended, Old, Options, OptionValues
from millstream.kafka_tools.options.option import Option

OPTIONS = Options(
    "For tests.",
    [
        Option("server", value="server"),
        Option("topic", value="topic"),
        Option("keys", value="k1,k2", separator=","),
        Option("state", value="String", optional=True, available_with=("list",)),
        Option("count", value="number"),
        Option("list"),
        Option("verbose", aliases=("v",)),
    ],
    old={
        "broker-list": Old("--server", "server"),
        "zookeeper": Old("--server"),
        "force": Old("nothing is asked anyway", is_ignored=True, has_value=False),
        "marker": Old("there are none", is_ignored=True),
    },
)
ABBREVIATED = Options(OPTIONS.purpose, OPTIONS.options, abbreviations=True)


def parse(*arguments: str, options: Options = OPTIONS) -> OptionValues:
    return options.parse(arguments, lambda text: None)


def refused(*arguments: str) -> str:
    with pytest.raises(JavaError) as caught:
        parse(*arguments)
    return caught.value.full_text


def test_values_stand_behind_or_with_an_equals_sign_and_may_begin_with_a_dash() -> None:
    for arguments in (["--topic", "-x"], ["--topic=-x"], ["-topic", "-x"], ["-topic=-x"]):
        assert parse(*arguments).text("topic") == "-x"


def test_an_equals_sign_without_a_value_takes_the_next_argument() -> None:
    assert parse("--topic=", "a").text("topic") == "a"


def test_options_are_given_again() -> None:
    values = parse("--topic", "a", "--topic", "b", "--keys", "1,2", "--keys", "3")
    assert values.texts("topic") == ["a", "b"]
    assert values.texts("keys") == ["1", "2", "3"]
    assert values.order == ["topic", "topic", "keys", "keys"]
    with pytest.raises(
        JavaError, match="Found multiple arguments for option topic, but you asked for only one"
    ):
        values.text("topic")


def test_a_value_may_be_left_out() -> None:
    assert parse("--list", "--state").text("state") is None
    assert parse("--state", "--list").text("state") is None
    assert parse("--list", "--state", "Empty").text("state") == "Empty"


def test_what_is_no_option_is_kept() -> None:
    assert parse("a", "--list", "-", "--", "--topic").others == ["a", "-", "--topic"]


def test_letters_may_stand_together() -> None:
    assert parse("-v").has("verbose")
    assert refused("-vx") == "joptsimple.UnrecognizedOptionException: x is not a recognized option"


def test_what_cannot_be_read() -> None:
    assert refused("--topics") == "joptsimple.UnrecognizedOptionException: topics is not a recognized option"
    assert refused("--top") == "joptsimple.UnrecognizedOptionException: top is not a recognized option"
    assert refused("--topic").endswith("Option topic requires an argument")
    assert refused("--state").endswith(
        "Option(s) [state] are unavailable given other options on the command line"
    )
    with pytest.raises(JavaError, match="Cannot parse argument '1_0' of option count"):
        parse("--count", "1_0").integer("count")


def test_names_are_cut_short_where_the_tool_allows_it() -> None:
    assert parse("--top", "a", options=ABBREVIATED).text("topic") == "a"
    with pytest.raises(JavaError, match="s is not a recognized option"):
        parse("--s", "a", options=ABBREVIATED)


def test_pairs_of_options() -> None:
    with pytest.raises(Ended) as missing:
        parse("--list").required("topic")
    assert missing.value.message == 'Missing required argument "[topic]"'
    with pytest.raises(Ended) as wrong:
        parse("--list", "--topic", "a").excluded("topic", "list")
    assert wrong.value.message == 'Option "[topic]" can\'t be used with option "[list]"'
    assert (wrong.value.status, wrong.value.usage) == (1, True)


def test_options_of_former_days() -> None:
    notes: list[str] = []
    assert OPTIONS.parse(["--broker-list", "a:1"], notes.append).text("server") == "a:1"
    assert OPTIONS.parse(["--force", "--list", "--marker", "x"], notes.append).order == ["list"]
    assert notes == [
        "note: --broker-list is --server today",
        "note: --force is no more: nothing is asked anyway",
        "note: --marker is no more: there are none",
    ]
    with pytest.raises(JavaError) as caught:
        parse("--zookeeper", "z:2181")
    assert str(caught.value) == "zookeeper is not a recognized option"
    assert caught.value.__notes__ == ["note: --zookeeper is no more: give --server"]
