"""The bound of a poll, and what observers make of a database's answers."""

import datetime as dt
import random

import pytest

from plugins.jdbc.arrays import array_literal
from plugins.jdbc.bounds import MARKS_MAX, Bound
from plugins.jdbc.mariadb import OpenSessions
from plugins.jdbc.position import floor
from plugins.jdbc.postgres import OpenTransactions, Snapshot


def open_(*ids):
    return OpenTransactions(frozenset(ids))


def advance(bound, mark, *ids):
    return bound.advance(lambda: mark, lambda: open_(*ids))


def test_a_mark_without_open_transactions_is_the_bound():
    bound = Bound("t")
    assert advance(bound, 5) == 5
    assert advance(bound, None) == 5


def test_a_mark_waits_only_for_what_was_open_then():
    bound = Bound("t")
    assert advance(bound, 5, "a") is None
    assert advance(bound, 7, "a", "b") is None
    assert advance(bound, 9, "b", "c") == 5
    assert advance(bound, None, "c") == 7
    assert advance(bound, None) == 9


def test_an_observer_that_sees_nothing_leaves_the_bound():
    bound = Bound("t")
    assert advance(bound, 5) == 5
    assert bound.advance(lambda: 6, lambda: None) == 5
    assert advance(bound, 7) == 7


def test_marks_are_bounded():
    bound = Bound("t")
    for mark in range(1000):
        advance(bound, mark, "a")
    assert bound.waiting == MARKS_MAX
    assert advance(bound, 1000) == MARKS_MAX - 1


def test_a_transaction_that_is_open_long_is_warned_about(caplog):
    now = [0.0]
    bound = Bound("orders", clock=lambda: now[0])
    for now[0] in (0.0, 30.0, 61.0, 62.0):
        advance(bound, 1 if now[0] == 0 else None, "7/12")
    assert [record.message for record in caplog.records] == [
        "orders: its newest rows wait for transactions that have been open for 61 s: 7/12"
    ]


def test_a_transaction_that_is_prepared_is_waited_for():
    bound = Bound("t")
    assert advance(bound, 5, "3/1", "-1/700") is None
    assert advance(bound, None, "-1/700") is None
    assert advance(bound, None, "-1/701") is None  # it may be the one that has ended, under another name
    assert advance(bound, None) == 5


def test_prepared_transactions_take_the_place_of_ended_ones():
    before, after = open_("3/1"), open_("-1/701")
    assert after.remaining(before.open, before) == {"-1/701"}
    assert open_().remaining(before.open, before) == frozenset()


def test_a_standby_waits_until_its_oldest_transaction_has_passed_the_mark():
    bound = Bound("t")
    assert bound.advance(lambda: 5, lambda: Snapshot(100, 110)) is None
    assert bound.advance(lambda: None, lambda: Snapshot(109, 200)) is None
    assert bound.advance(lambda: None, lambda: Snapshot(110, 200)) == 5


def sessions(transactions=(), statements=(), query_id=100, prepared=()):
    return OpenSessions(dict(transactions), frozenset(prepared), dict(statements), query_id)


@pytest.mark.parametrize(
    ("after", "still"),
    [
        (sessions(statements={7: 90}, query_id=101), {(7, 100)}),  # the same statement runs
        (sessions(statements={7: 105}, query_id=110), set()),  # a later statement
        (sessions(query_id=110), set()),
        (
            sessions(transactions={7: "12:00:00"}, query_id=110),
            {(7, "12:00:00")},
        ),  # it has left a transaction
    ],
)
def test_a_statement_of_mariadb_is_waited_for_with_its_transaction(after, still):
    before = sessions(statements={7: 90})
    assert before.open == {(7, 100)}
    assert after.remaining(before.open, before) == still


def test_a_transaction_of_mariadb_ends_with_its_start_time():
    before = sessions(transactions={7: "12:00:00"})
    assert sessions(transactions={7: "12:00:00"}).remaining(before.open, before) == before.open
    assert sessions(transactions={7: "12:00:01"}).remaining(before.open, before) == frozenset()
    assert sessions(prepared=["99"]).remaining(before.open, before) == {("prepared", "99")}


@pytest.mark.parametrize("seed", range(20))
def test_a_model_of_ids_taken_before_commits_loses_none(seed):
    """Transactions take ids of one sequence and commit later, in any order; the reader follows the bound."""
    random_ = random.Random(seed)
    bound, running, visible, read, position = Bound("t"), {}, set(), [], 0
    next_id, next_transaction = 1, 1
    for _ in range(500):
        step = random_.randrange(4)
        if step == 0:
            running[next_transaction] = []
            next_transaction += 1
        elif step == 1 and running:
            running[random_.choice(list(running))].append(next_id)
            next_id += 1
        elif step == 2 and running:
            ended = running.pop(random_.choice(list(running)))
            visible |= set(ended) if random_.random() < 0.8 else set()
        else:
            mark = max((i for i in visible if i > position), default=None)
            limit = bound.advance(lambda mark=mark: mark, lambda: open_(*running))
            new = sorted(i for i in visible if limit is not None and position < i <= limit)[:3]
            read += new
            position = new[-1] if new else position
    for ended in running.values():
        visible |= set(ended)
    running.clear()
    for _ in range(1000):
        mark = max((i for i in visible if i > position), default=None)
        limit = bound.advance(lambda mark=mark: mark, lambda: open_())
        read += sorted(i for i in visible if limit is not None and position < i <= limit)
        position = max(read, default=0)
    assert read == sorted(visible)


@pytest.mark.parametrize(("digits", "micros"), [(0, 0), (3, 123000), (6, 123456), (7, 123456)])
def test_times_are_cut_to_the_digits_of_the_column(digits, micros):
    moment = dt.datetime(2024, 1, 1, 0, 0, 1, 123456)
    assert floor(moment, digits) == moment.replace(microsecond=micros)


def test_array_literals():
    assert array_literal([1, None, 3]) == "{1,NULL,3}"
    assert array_literal(['a"b', "c\\d", "", "NULL", None]) == r'{"a\"b","c\\d","","NULL",NULL}'
    assert array_literal([b"\x00\xff"]) == r'{"\\x00ff"}'
    with pytest.raises(TypeError, match="object"):
        array_literal([object()])
