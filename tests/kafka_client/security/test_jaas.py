"""One-line JAAS configurations, as Kafka reads them."""

from __future__ import annotations

import pytest

from kafka_client.security.jaas import JaasError, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def options(text: str) -> dict[str, str]:
    return dict(parse_jaas(f"{PLAIN} required {text};").options)


def test_a_login_module_with_its_options() -> None:
    entry = parse_jaas(f'{PLAIN} required username="alice" password="a;b=c d";')
    assert entry.module == "PlainLoginModule"
    assert dict(entry.options) == {"username": "alice", "password": "a;b=c d"}


def test_the_flag_may_be_in_any_case_and_blanks_and_lines_do_not_matter() -> None:
    assert parse_jaas(f'{PLAIN} REQUIRED\n  username = "u"\n ;').options == {"username": "u"}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r'"a\"b"', 'a"b'),
        (r'"a\\b"', "a\\b"),
        (r'"\101\t"', "A\t"),
        ("'it is \"quoted\"'", 'it is "quoted"'),
        ("bare-word_$", "bare-word_$"),
        ('"// no comment"', "// no comment"),
        ('"größe"', "größe"),
    ],
)
def test_values(written: str, meant: str) -> None:
    assert options(f"password={written}") == {"password": meant}


def test_comments_are_left_out() -> None:
    assert options('/* who */ username="u" // the user\n password="p"') == {"username": "u", "password": "p"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "semicolon"),
        (f'{PLAIN} required password="hunter2"', "semicolon"),
        (f'{PLAIN} required password="hunter2;', "quote"),
        (f'{PLAIN} password="hunter2";', "required"),
        (f"{PLAIN} required password hunter2;", "name="),
        (f"{PLAIN} required password= hunter2 hunter2;", "name="),
        (f'{PLAIN} required password="hunter2"; {PLAIN} required;', "one login module"),
    ],
)
def test_what_cannot_be_read_is_told_without_its_text(text: str, why: str) -> None:
    with pytest.raises(JaasError, match=why) as caught:
        parse_jaas(text)
    assert "hunter2" not in str(caught.value)


def test_the_options_do_not_show() -> None:
    assert "hunter2" not in repr(parse_jaas(f'{PLAIN} required password="hunter2";'))
