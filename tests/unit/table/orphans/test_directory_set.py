"""Directories, and what overlaps with them."""

from bergline.table.expiry.path_rules import PathRules
from bergline.table.orphans.directory_set import DirectorySet

RULES = PathRules({}, {})


def test_directories_overlap_inside_and_around() -> None:
    ours = DirectorySet(RULES, ["s3://b/db/t"])
    assert ours.overlapping(["s3://b/db/t/data"]) == ours.overlapping(["s3://b/db"]) == "s3://b/db/t"
    assert ours.overlapping(["s3://b/db/t2"]) is None
    assert ours.overlapping(["s3://other/db/t"]) is None
    assert ours.may_overlap(["s3a://other/db/t"])
    assert not ours.may_overlap(["s3a://other/db/t2"])
    assert ours.holding([RULES.exact("s3://b/db/t/data/f")]) == "s3://b/db/t"
    assert ours.holding([RULES.exact("s3://b/db/f")]) is None
    assert ours.paths == ["/db/t/"]
