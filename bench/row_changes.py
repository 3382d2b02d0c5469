"""What `bench_rows.py` changes: many rows of one table in every way, and few rows of tables of many shapes."""

from itertools import product
from typing import NamedTuple

COPY_ON_WRITE, MERGE_ON_READ = "copy-on-write", "merge-on-read"
COMMANDS = ("delete", "update", "merge")


class Change(NamedTuple):
    """A command on a copy of a table of its own."""

    command: str
    mode: str
    version: int
    place: str

    @property
    def original(self) -> str:
        """The table of which a copy is changed."""
        return "merged" if self.command == "merge" else "rows"

    @property
    def table(self) -> str:
        """The name of the copy, as far as it does not depend on the process."""
        return f"{self.command}_{self.mode[:1]}{self.version}_{self.place}"

    def __str__(self) -> str:
        return f"{self.mode}, v{self.version}, {self.place}"


CHANGES = [
    Change(command, mode, version, place)
    for command, (mode, version), place in product(
        COMMANDS, ((MERGE_ON_READ, 2), (MERGE_ON_READ, 3), (COPY_ON_WRITE, 2)), ("spread", "clustered")
    )
]
WARM = Change("delete", MERGE_ON_READ, 2, "warm")
"""What is done first, without the clock."""


def properties(mode: str) -> dict[str, str]:
    """A table whose rows change in this way."""
    return {f"write.{command}.mode": mode for command in COMMANDS}


class Shape(NamedTuple):
    """A small table: what it has beside `id`, `region` and `amount`, with its values, and how it is laid out."""

    says: str
    version: int
    mode: str
    partition: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    order: str = ""


PLACE = (
    "place struct<city: string, at: struct<x: double, y: double>>",
    "named_struct('city', concat('c', id), 'at', named_struct('x', id * 1D, 'y', 2D))",
)
TAGS = (("tags array<string>", "array('a', concat('t', id))"), ("counts map<string, int>", "map('k', int(id))"))
DAY = ("ts timestamp", "timestamp_seconds(1700000000 + id * 40000)")
TYPES = (
    ("f1 boolean", "id % 2 = 0"),
    ("f2 int", "int(id)"),
    ("f3 float", "float(id)"),
    ("f4 decimal(12, 2)", "cast(id AS decimal(12, 2))"),
    ("f5 date", "date_add(date'2026-01-01', int(id))"),
    DAY,
    ("f6 timestamp_ntz", "timestamp_ntz'2026-01-01 00:00:00'"),
    ("f7 binary", "cast(concat('b', id) AS binary)"),
)
SHAPES = (
    Shape("three columns", 2, MERGE_ON_READ),
    Shape("three columns", 3, MERGE_ON_READ),
    Shape("three columns", 2, COPY_ON_WRITE),
    Shape("three columns", 3, COPY_ON_WRITE),
    Shape("partitioned by region", 2, MERGE_ON_READ, "region"),
    Shape("partitioned by region", 3, MERGE_ON_READ, "region"),
    Shape("partitioned by region", 2, COPY_ON_WRITE, "region"),
    Shape("partitioned by bucket(4, id)", 2, MERGE_ON_READ, "bucket(4, id)"),
    Shape("partitioned by days(ts)", 3, COPY_ON_WRITE, "days(ts)", (DAY,)),
    Shape("nested structs", 2, MERGE_ON_READ, "", (PLACE,)),
    Shape("nested structs", 3, COPY_ON_WRITE, "", (PLACE,)),
    Shape("a list and a map", 3, MERGE_ON_READ, "", TAGS),
    Shape("eleven types", 2, COPY_ON_WRITE, "", TYPES),
    Shape("ordered by region", 2, MERGE_ON_READ, "", (), "region, id"),
)
