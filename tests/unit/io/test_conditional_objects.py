"""Objects that change only under a condition, in memory; lost answers are tested on a real server in tests/s3."""

from types import SimpleNamespace
from typing import Any

import obstore
import obstore.store
import pytest

from bergline.errors import FormatError
from bergline.io.conditional_objects import ConditionalObjects
from bergline.io.open_store import OpenStore


@pytest.fixture(params=["memory://bucket/some/place", "memory://bucket"])
def objects(request: pytest.FixtureRequest) -> ConditionalObjects:
    memory = obstore.store.MemoryStore()
    return ConditionalObjects(OpenStore(obstore, memory, memory), request.param)


def test_object_is_created_once(objects: ConditionalObjects) -> None:
    assert objects.read("a/x") is None
    assert objects.create("a/x", b"1")
    assert objects.create("a/x", b"2") is None
    found = objects.read("a/x")
    assert found is not None
    assert found.data == b"1"
    assert found.modified is not None


def test_object_is_replaced_only_as_it_was_found(objects: ConditionalObjects) -> None:
    first = objects.create("x", b"1")
    assert first is not None
    second = objects.replace("x", first, b"2")
    assert second is not None
    assert objects.replace("x", first, b"3") is None
    found = objects.read("x")
    assert found is not None
    assert (found.data, found.tag) == (b"2", second.tag)
    assert objects.replace("x", found, b"3")


def test_object_that_is_gone_is_not_replaced(objects: ConditionalObjects) -> None:
    found = objects.create("x", b"1")
    assert found is not None
    objects.delete("x")
    objects.delete("x")
    assert objects.replace("x", found, b"2") is None
    assert objects.read("x") is None


def test_names_are_those_below_a_directory(objects: ConditionalObjects) -> None:
    for name in ("d/b", "d/a/c", "d%2Fe", "da", "e"):
        objects.create(name, b"")
    assert objects.names("d") == ["d/a/c", "d/b"]
    assert objects.names("none") == []


def test_large_object_is_not_read(objects: ConditionalObjects) -> None:
    objects.create("x", bytes(1024 * 1024 + 1))
    with pytest.raises(FormatError, match=r"expected up to 1048576 bytes, found 1048577 in memory://bucket.*/x"):
        objects.read("x")


def put_twice(*arguments: Any, **options: Any) -> Any:
    """A request that something on the way repeats; the second answer is the one that comes back."""
    obstore.put(*arguments, **options)
    return obstore.put(*arguments, **options)


def test_request_that_is_delivered_twice_was_not_refused() -> None:
    memory = obstore.store.MemoryStore()
    api = SimpleNamespace(put=put_twice, get=obstore.get, delete=obstore.delete)
    objects = ConditionalObjects(OpenStore(api, memory, memory), "memory://bucket")  # type: ignore[arg-type]
    first = objects.create("x", b"1")
    assert first is not None
    second = objects.replace("x", first, b"2")
    assert second is not None
    assert objects.read("x") == second._replace(modified=objects.read("x").modified)  # type: ignore[union-attr]
    assert objects.replace("x", first, b"3") is None
