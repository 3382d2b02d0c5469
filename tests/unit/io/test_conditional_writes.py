"""Conditional writes on a store in memory; lost responses are tested on a real server in tests/s3."""

import obstore
import obstore.store
import pytest

from bergline.errors import AlreadyExistsError
from bergline.io.conditional_writes import Tag, WriteRefusal, create_object, put_object, tag_of
from bergline.io.open_store import OpenStore


@pytest.fixture
def store() -> OpenStore:
    memory = obstore.store.MemoryStore()
    return OpenStore(obstore, memory, memory)


def put(store: OpenStore, data: bytes, condition: Tag | str, *, unique: bool = True) -> Tag | WriteRefusal:
    return put_object(store, "k", "memory://b/k", data, condition, unique=unique)  # type: ignore[arg-type]


def content(store: OpenStore) -> bytes:
    return bytes(obstore.get(store.store, "k").bytes())


def test_object_is_written_only_with_the_tag_of_the_condition(store: OpenStore) -> None:
    first = put(store, b"1", "create")
    assert isinstance(first, dict)
    second = put(store, b"2", first)
    assert isinstance(second, dict)
    assert put(store, b"3", first) is WriteRefusal.REFUSED
    assert content(store) == b"2"


@pytest.mark.parametrize("unique", [True, False])
def test_object_that_exists_is_not_created(store: OpenStore, unique: bool) -> None:
    put(store, b"1", "create")
    assert put(store, b"2", "create", unique=unique) is WriteRefusal.REFUSED
    assert content(store) == b"1"


def test_unique_bytes_that_are_there_already_are_our_own(store: OpenStore) -> None:
    first = put(store, b"1", "create")
    assert put(store, b"1", "create", unique=True) == first
    assert put(store, b"1", "create", unique=False) is WriteRefusal.REFUSED


def test_create_object_never_overwrites(store: OpenStore) -> None:
    create_object(store, "k", "memory://b/k", b"1")
    with pytest.raises(AlreadyExistsError, match="memory://b/k"):
        create_object(store, "k", "memory://b/k", b"2")
    assert content(store) == b"1"


def test_tag_is_what_identifies_the_content() -> None:
    assert tag_of({"e_tag": "x", "version": None, "size": 3}) == {"e_tag": "x"}
    assert tag_of({"e_tag": "x", "version": "7"}) == {"e_tag": "x", "version": "7"}
