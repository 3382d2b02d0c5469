"""When two locations are one file."""

import pytest

from bergline.table.expiry.path_rules import PathRules

RULES = PathRules({"hdfs, viewfs": "x"}, {"nn1,nn2": "cluster"})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/a/b", "file:///a/b"),
        ("file:/a/b", "file:///a//c/../b"),
        ("s3a://b/k", "s3://b/k"),
        ("S3N://b//k///l", "s3://b/k/l"),
        ("gcs://b/k", "gs://b/k"),
        ("wasb://c@a.blob.core.windows.net/k", "abfss://c@a.dfs.core.windows.net/k"),
        ("hdfs://nn1/k", "viewfs://nn2/k"),
        ("hdfs://NameNode/k", "hdfs://namenode/k"),
        ("memory:/a//b", "memory:/a/b"),
    ],
)
def test_these_are_equal(one: str, other: str) -> None:
    assert RULES.spell(one) == RULES.spell(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://a/k", "s3://b/k"),
        ("s3://a/k", "gs://a/k"),
        ("/a/k", "s3://b/a/k"),
        ("s3://a/x y", "s3://a/x%20y"),
        ("/a/ü", "/a/u\u0308"),
        ("/a/%25", "/a/%"),
    ],
)
def test_these_may_be_one_file(one: str, other: str) -> None:
    assert RULES.spell(one).exact != RULES.spell(other).exact
    assert RULES.spell(one).loose == RULES.spell(other).loose


@pytest.mark.parametrize(
    ("one", "other"), [("/a/b", "/a/B"), ("s3://b/x+y", "s3://b/x y"), ("s3://b/k", "s3://b/k.x"), ("/a/b#c", "/a/b")]
)
def test_these_are_two_files(one: str, other: str) -> None:
    assert RULES.spell(one).loose != RULES.spell(other).loose


def test_a_directory_is_what_its_files_begin_with() -> None:
    assert RULES.below("s3a://b/t/") == RULES.below("s3://b//t") == "s3://b/t/"
    assert RULES.spell("s3://b/t/x").exact.startswith(RULES.below("s3a://b/t"))
    assert not RULES.spell("s3://b/t2/x").exact.startswith(RULES.below("s3://b/t"))
    assert RULES.spell("s3a://b/t/x").prefix == "s3://b"
