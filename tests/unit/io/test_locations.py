"""Locations and their spellings."""

from pathlib import Path

import pytest

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.io.locations import (
    absolute_location,
    directory_location,
    join,
    local_path,
    normalized,
    object_location,
    scheme_of,
)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/tmp/x", "file"),  # noqa: S108
        ("relative/x", "file"),
        ("file:///tmp/x", "file"),
        ("FILE:/tmp/x", "file"),
        ("s3a://bucket/x", "s3a"),
        ("memory:/x", "memory"),
        ("with:colon/x", "file"),
        ("a:/x", "file"),
    ],
)
def test_scheme(location: str, expected: str) -> None:
    assert scheme_of(location) == expected


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/a/b", "/a/b"),
        ("/a//b/../c", "/a/c"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("file:///a/b%20c", "/a/b%20c"),
        ("/a/b c", "/a/b c"),
        ("//a/b", "/a/b"),
        ("file:////a/b", "/a/b"),
        ("file://///a/b", "/a/b"),
    ],
)
def test_local_path_takes_text_as_it_stands(location: str, expected: str) -> None:
    assert local_path(location) == expected


def test_relative_path_is_below_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert local_path("x/y") == f"{tmp_path}/x/y"
    assert absolute_location("x/y/") == f"file://{tmp_path}/x/y"


@pytest.mark.parametrize("location", ["s3://bucket/x", "file://host/x", "file://host"])
def test_location_elsewhere_is_no_local_path(location: str) -> None:
    with pytest.raises(InvalidInputError, match=f"found `{location}`"):
        local_path(location)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/a/b", "file:///a/b"),
        ("file:/a/b", "file:///a/b"),
        ("FILE:///a//b", "file:///a/b"),
        ("s3a://bucket/x", "s3://bucket/x"),
        ("s3n://bucket/x", "s3://bucket/x"),
        ("s3://bucket/x", "s3://bucket/x"),
        ("gcs://bucket/x", "gs://bucket/x"),
        ("abfs://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x"),
        ("wasb://c@a.blob.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x"),
        ("wasbs://c@a.blob.core.windows.net/x.blob.y", "abfss://c@a.dfs.core.windows.net/x.blob.y"),
        ("memory:/x", "memory:/x"),
    ],
)
def test_all_spellings_normalise_to_one(location: str, expected: str) -> None:
    assert normalized(location) == expected
    assert normalized(normalized(location)) == expected


def test_absolute_location_keeps_its_scheme() -> None:
    assert absolute_location("s3://bucket/x/") == "s3://bucket/x"


def test_join_puts_one_slash_between() -> None:
    assert join("file:///a/", "b", "c") == "file:///a/b/c"


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("s3://bucket/a/b", ("s3", "bucket", "a/b")),
        ("S3A://bucket/a b%20c?d#e", ("s3a", "bucket", "a b%20c?d#e")),
        ("abfss://c@a.dfs.core.windows.net/x", ("abfss", "c@a.dfs.core.windows.net", "x")),
    ],
)
def test_parts_of_an_object_location_stand_as_written(location: str, expected: tuple[str, str, str]) -> None:
    assert object_location(location) == expected


@pytest.mark.parametrize("location", ["s3://", "s3:///x", "s3:/b/x", "s3://b", "s3://b/", "b/x", "//b/x"])
def test_object_location_without_bucket_or_key_is_refused(location: str) -> None:
    with pytest.raises(InvalidInputError, match=f"found `{location}`"):
        object_location(location)


@pytest.mark.parametrize("key", ["a//b", "/a", "a/", "./a", "a/../b", "a\nb", "a\x7f"])
def test_key_that_the_client_would_change_is_refused(key: str) -> None:
    with pytest.raises(UnsupportedError, match="expected a key without"):
        object_location(f"s3://bucket/{key}")


@pytest.mark.parametrize(
    ("location", "key"), [("s3://b", ""), ("s3://b/", ""), ("s3://b/a/b", "a/b"), ("s3://b/a/b/", "a/b")]
)
def test_directory_may_be_a_bucket_and_may_end_in_a_slash(location: str, key: str) -> None:
    assert directory_location(location).key == key
