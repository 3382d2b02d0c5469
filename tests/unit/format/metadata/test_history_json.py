"""The JSON of a history is encoded once, and shared by what grows out of it."""

import msgspec
import pytest

from bergline.format.metadata import history_json
from bergline.format.metadata.history_json import EncodedArray


def joined(array: EncodedArray) -> bytes:
    return b"[" + b",".join(array.pieces) + b"]"


@pytest.mark.parametrize("size", [1, 5, 2**16])
def test_grown_array_is_that_of_all_values(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_json, "_PIECE", size)
    values: tuple[str, ...] = ()
    array = EncodedArray()
    for number in range(20):
        values = (*values, *[f"\u00e9{number}"] * (number % 3))
        array = array.extended(values)
        assert (array.count, joined(array)) == (len(values), msgspec.json.encode(values))


def test_values_that_are_known_are_not_encoded_again() -> None:
    first = EncodedArray().extended((1,) * 2**16)
    second = first.extended((1,) * 2**16 + (2,))
    assert second.pieces[0] is first.pieces[0]
    assert second.pieces[1:] == (b"2",)
    assert second.extended((1,) * 2**16 + (2,)) is second
