"""Any text as a location: it works, or one of our own errors says why not."""

import obstore
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import MemoryStore

from bergline.errors import BerglineError, InvalidInputError
from bergline.io.locations import normalized
from bergline.io.object_store import ObjectStoreFileIO
from bergline.io.open_store import OpenStore, open_store

texts = st.text(st.characters(), max_size=12)
pieces = st.lists(
    st.one_of(texts, st.sampled_from(["s3", "gs", "abfss", "az", "://", ":", "/", "//", "@", "..", "%", "?"]))
)
settings = st.dictionaries(
    st.sampled_from(
        ["s3.endpoint", "s3.region", "s3.access-key-id", "s3.secret-access-key", "adls.account-key", "adls.token"]
    ),
    st.one_of(texts, st.sampled_from(["http://host", "http://host:99999", "http://[::1]:1", "https://a..b"])),
)


@given(key=texts)
def test_key_is_kept_as_it_stands_or_refused(key: str) -> None:
    files, bucket = ObjectStoreFileIO(), MemoryStore()
    files._stores["s3", "bucket"] = OpenStore(obstore, bucket, bucket)
    location = f"s3://bucket/d/{key}"
    try:
        files.create(location, b"x")
    except BerglineError:
        assert files.list("s3://bucket") == []
        return
    assert files.list("s3://bucket/d") == [location]
    assert files.read(location) == b"x"
    assert files.delete([location]) == []
    assert files.list("s3://bucket") == []


@given(parts=pieces)
def test_location_is_normalised_once_and_for_all(parts: list[str]) -> None:
    location = "".join(parts)
    try:
        once = normalized(location)
    except InvalidInputError:
        return
    assert normalized(once) == once


@given(
    scheme=st.sampled_from(["s3", "gs", "abfss"]),
    authority=st.one_of(texts, st.sampled_from(["bucket", "container@account.dfs.core.windows.net"])),
    properties=settings,
)
def test_store_opens_or_says_why_not(scheme: str, authority: str, properties: dict[str, str]) -> None:
    refused = ""
    try:
        opened = open_store(scheme, authority, properties)
    except InvalidInputError as error:
        refused = str(error)
    assert refused or opened.store is not None
