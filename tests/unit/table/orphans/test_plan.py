"""A plan of orphan files as a value."""

from bergline.catalog.identifiers import TableName
from bergline.io.fileio import ListedFile
from bergline.table.orphans.plan import OrphanPlan, OrphanRequest, printable

PLAN = OrphanPlan(
    TableName(("db",), "t"),
    "uuid",
    "s3://b/t/metadata/1.json",
    OrphanRequest(),
    ("s3://b/t",),
    1_700_000_000_000,
    files=tuple(ListedFile(f"s3://b/t/data/{n}", 600, 1_600_000_000_000) for n in range(22)),
    needed=3,
    recent=2,
    hidden=1,
)


def test_plan_is_printed_with_some_of_its_files() -> None:
    lines = str(PLAN).splitlines()
    assert lines[0] == "orphan files of `db.t` from before 2023-11-14 22:13:20 UTC"
    assert lines[1:3] == ["  in s3://b/t", "22 may go (12.9 KiB):"]
    assert lines[3] == "  2020-09-13 12:26:40 UTC       600 B  s3://b/t/data/0"
    assert lines[-2:] == ["  and 2 more", "3 are needed, 2 are too recent, 1 are hidden, 0 are in doubt"]


def test_plan_has_a_row_for_each_file() -> None:
    rows = PLAN.to_arrow()
    assert (rows.num_rows, PLAN.size) == (22, 13_200)
    assert rows.column_names == ["location", "size_in_bytes", "last_modified"]


def test_names_that_are_no_text_can_be_printed() -> None:
    assert printable("a\udcffb") == "a\\udcffb"
