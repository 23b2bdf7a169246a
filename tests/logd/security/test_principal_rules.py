"""Kafka's SslPrincipalMapper and our rules give the same names to the same certificates."""

from __future__ import annotations

import itertools

import pytest

from kafka_client.errors import ConfigError
from logd.security.principal_rules import NoRuleApplies, PrincipalRules
from tests.support import java

NAMES = (
    "CN=Duke,OU=ServiceUsers,O=Org,C=US",
    "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US",
    "cn=duke,ou=sme,dc=mycp,dc=com",
    "cN=duke,OU=JavaSoft,O=Sun Microsystems",
    "OU=JavaSoft,O=Sun Microsystems,C=US",
    "CN=Tkac\\, Adam,OU=ITZ,DC=geodis,DC=cz",
    "CN=a/b",
    "",
)
RULES = (
    "DEFAULT",
    "",
    ",   , DEFAULT ,,",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U, DEFAULT",
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U",
    "RULE:^CN=((\\\\, *|\\w)+)(,.*|$)/$1/,DEFAULT",
    "RULE:^CN=(?<who>[^,]+)(,.*|$)/$1-$10\\$x/",
    "RULE:.*/x/",
    "RULE:.*?,(.*)/$1/\nDEFAULT",
    "RULE:^CN=a\\/b$/a\\/b/, RULE:^$/empty/",
    "RULE:^CN=([^,ADEFLTU,]+)(,.*|$)/$1/",
    "default",
    "DEFAULT/L",
    "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
    "rule:^CN=(.*?),OU=ServiceUsers.*$/$1/",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L/U",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/LU",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/LU",
    "RULE:,RULE:,/,RULE:,\\//U,RULE:,/RULE:,/,DEFAULT",
    "RULE:([A-Z/x/",
)


def ours(rules: str, name: str) -> str:
    try:
        return PrincipalRules(rules).principal_of(name).removeprefix("User:")
    except NoRuleApplies:
        return "NONE"
    except ConfigError:
        return "INVALID"


@java.needs_javac
def test_the_same_names() -> None:
    # The program reads lines, so a newline between rules is left to the next test.
    rules = [each for each in RULES if "\n" not in each]
    questions = list(itertools.product(rules, NAMES))
    lines = "\n".join(f"rules\t{each}\t{name}" for each, name in questions)
    answers = java.run_program("PrincipalNames", stdin=lines).splitlines()
    expected = dict(zip(questions, answers, strict=True))
    assert {question: ours(*question) for question in questions} == expected
    assert {"NONE", "INVALID", "duke", "DUKE@SME"} <= set(answers)


def test_rules_on_lines() -> None:
    assert ours("RULE:^CN=(.*?),.*/$1/\nDEFAULT", NAMES[0]) == "Duke"
    assert ours("RULE:^CN=(.*?),.*/$1/\nDEFAULT", "O=x") == "O=x"


@pytest.mark.parametrize("replacement", ["$2", "$", "x\\"])
def test_a_replacement_without_its_group_is_refused_at_the_start(replacement: str) -> None:
    with pytest.raises(ConfigError, match=r"listener\.name\.x\.ssl"):
        PrincipalRules(f"RULE:^CN=(.*)$/{replacement}/", "listener.name.x.ssl.principal.mapping.rules")
