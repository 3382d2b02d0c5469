"""Sort orders are kept as they were written."""

import pytest

from bergline.errors import FormatError
from bergline.format.sorting import UNSORTED, SortOrder
from bergline.format.wire import decode_json, encode_json


def test_order_survives_its_json() -> None:
    field = b'{"source-id":2,"transform":"bucket[4]","direction":"desc","null-order":"nulls-last"}'
    data = b'{"order-id":3,"fields":[%s]}' % field
    assert encode_json(decode_json(data, SortOrder, "x")) == data


def test_order_zero_is_unsorted() -> None:
    assert encode_json(UNSORTED) == b'{"order-id":0,"fields":[]}'


def test_unknown_direction_names_the_place() -> None:
    data = (
        b'{"order-id":1,"fields":[{"source-id":2,"transform":"identity","direction":"up","null-order":"nulls-last"}]}'
    )
    with pytest.raises(FormatError, match=r"at \$\.fields\[0\]\.direction in x"):
        decode_json(data, SortOrder, "x")
