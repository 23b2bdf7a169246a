"""The named shapes of records: users, orders and pageviews, with the fields of Confluent's quickstarts."""

from __future__ import annotations

from typing import Any, NamedTuple


class Quickstart(NamedTuple):
    """The fields of a record, and the field that becomes the key."""

    fields: dict[str, Any]
    key_field: str


_TIME = {"type": "long", "range": {"min": 1487715775521, "max": 1519273364600}}

QUICKSTARTS = {
    "users": Quickstart(
        {
            "registertime": _TIME,
            "userid": {"regex": "User_[1-9]"},
            "regionid": {"regex": "Region_[1-9]"},
            "gender": {"options": ["MALE", "FEMALE", "OTHER"]},
        },
        "userid",
    ),
    "orders": Quickstart(
        {
            "ordertime": _TIME,
            "orderid": {"type": "int", "iteration": {"start": 0}},
            "itemid": {"regex": "Item_[1-9][0-9]{0,2}"},
            "orderunits": {"type": "double", "range": {"min": 0.1, "max": 10.0}},
            "address": {
                "type": "record",
                "fields": {
                    "city": {"regex": "City_[1-9][0-9]?"},
                    "state": {"regex": "State_[1-9][0-9]?"},
                    "zipcode": {"type": "long", "range": {"min": 10000, "max": 100000}},
                },
            },
        },
        "orderid",
    ),
    "pageviews": Quickstart(
        {
            "viewtime": {"type": "long", "iteration": {"start": 1, "step": 10}},
            "userid": {"regex": "User_[1-9]"},
            "pageid": {"regex": "Page_[1-9][0-9]?"},
        },
        "viewtime",
    ),
}
