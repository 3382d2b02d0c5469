"""Plans and rows next to a brute-force reader: small tables with every kind of delete, spec and evolved schema."""

import copy
import datetime as dt
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import brute_force
from hand_made import DELETED, EXISTING, Entry, Field, HandMadeTable, Values
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bergline
from bergline.catalog.identifiers import TableName
from bergline.table.table import Table

Truth = bool | None
Filter = tuple[str, Callable[[dict[str, Any]], Truth]]

A, B, D, F, S, L, E = 1, 2, 3, 4, 5, 6, 7
FIRST_SCHEMA: list[Field] = [
    {"id": A, "name": "a", "required": False, "type": "int"},
    {"id": B, "name": "b", "required": False, "type": "string"},
    {"id": D, "name": "d", "required": False, "type": "date"},
    {"id": F, "name": "f", "required": False, "type": "double"},
    {
        "id": S,
        "name": "s",
        "required": False,
        "type": {"type": "struct", "fields": [{"id": 11, "name": "x", "required": False, "type": "int"}]},
    },
    {
        "id": L,
        "name": "l",
        "required": False,
        "type": {"type": "list", "element-id": 13, "element": "int", "element-required": False},
    },
]
SPECS: list[list[tuple[int, str]]] = [
    [],
    [(B, "identity")],
    [(A, "bucket[3]")],
    [(B, "truncate[1]"), (A, "identity")],
    [(D, "identity")],
    [(D, "month"), (B, "void")],
    [(A, "truncate[4]")],
    [(B, "void")],
]
DAYS = [dt.date(2026, 1, 1), dt.date(2026, 1, 31), dt.date(2026, 2, 1), dt.date(1969, 12, 31)]
values: dict[int, st.SearchStrategy[Any]] = {
    A: st.none() | st.integers(-3, 9),
    B: st.none() | st.sampled_from(["", "x", "xy", "xyz", "é", "z"]),
    D: st.none() | st.sampled_from(DAYS),
    F: st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")]),
    S: st.none() | st.fixed_dictionaries({11: st.none() | st.integers(0, 2), 12: st.none() | st.just("y")}),
    L: st.none() | st.lists(st.none() | st.integers(0, 2), max_size=2),
    E: st.none() | st.integers(0, 3),
}
rows = st.fixed_dictionaries(values)


def rename(fields: list[Field]) -> list[Field]:
    return [{**f, "name": f["name"] + "2"} if f["id"] in {B, D} else f for f in fields]


def widen(fields: list[Field]) -> list[Field]:
    return [{**f, "type": "long"} if f["id"] == A else f for f in fields]


def reverse(fields: list[Field]) -> list[Field]:
    return fields[::-1]


def drop_double(fields: list[Field]) -> list[Field]:
    return [f for f in fields if f["id"] != F]


def swap_names(fields: list[Field]) -> list[Field]:
    """Two columns take each other's names, which a reader by name would mix up."""
    names = {f["id"]: f["name"] for f in fields}
    swapped = {A: names[A] if E not in names else names[E], E: names[A]}
    return [{**f, "name": swapped.get(f["id"], f["name"])} for f in fields]


def add_column(fields: list[Field]) -> list[Field]:
    return fields if any(f["id"] == E for f in fields) else [*fields, _added()]


def evolve_struct(fields: list[Field]) -> list[Field]:
    fields = copy.deepcopy(fields)
    struct = next(f for f in fields if f["id"] == S)["type"]
    struct["fields"] = [
        {"id": 12, "name": "x", "required": False, "type": "string"},
        {"id": 11, "name": "x_old", "required": False, "type": "long"},
    ]
    return fields


def _added() -> Field:
    return {"id": E, "name": "e", "required": False, "type": "int"}


evolutions = st.lists(
    st.sampled_from([rename, widen, reverse, drop_double, swap_names, add_column, evolve_struct]),
    max_size=4,
    unique=True,
)


@st.composite
def tables(draw: st.DrawFn, version: int) -> HandMadeTable:
    """A table with a history: each commit adds data and deletes, a later one rewrites manifests and removes files."""
    schemas = [FIRST_SCHEMA]
    for evolve in draw(evolutions):
        schemas.append(evolve(schemas[-1]))
    table = HandMadeTable(version, "memory://warehouse/db/hand", schemas, _specs(draw))
    commits = draw(st.integers(1, 3))
    current = sorted(draw(_index(schemas)) for _ in range(commits))
    entries: list[Entry] = []
    for number, schema in enumerate(current, 1):
        for _ in range(draw(st.integers(1, 2))):
            entries += _data_files(draw, table, number, schema)
        for _ in range(draw(st.integers(0, 2))):
            entries.append(_delete_file(draw, table, entries, number, schema))
        if version >= 3:
            entries += _vectors(draw, table, entries, number)
    manifests: dict[Any, dict[str, Any]] = {}
    for number, schema in enumerate(current, 1):
        groups: dict[Any, list[Entry]] = {}
        for entry in entries:
            if entry.sequence_number == number:
                groups.setdefault((entry.spec_id, entry.content != 0), []).append(entry)
        for place, group in groups.items():
            manifests[number, *place] = _manifest(draw, table, group, number)
        table.snapshot([m for (n, *_), m in manifests.items() if n <= number], number, schema)
    if draw(st.booleans()):
        table.snapshot(_rewritten(draw, table, entries, manifests, commits + 1), commits + 1, len(schemas) - 1)
    return table


def _manifest(draw: st.DrawFn, table: HandMadeTable, entries: list[Entry], number: int) -> dict[str, Any]:
    return table.manifest(entries, sequence_number=number, snapshot_id=999 + number, schema=draw(_index(table.schemas)))


def _index(items: Sequence[Any]) -> st.SearchStrategy[int]:
    return st.integers(0, len(items) - 1)


def _specs(draw: st.DrawFn) -> list[list[Field]]:
    chosen = draw(st.lists(st.sampled_from(SPECS), min_size=1, max_size=3, unique_by=str))
    specs, field_id = [], 1000
    for spec in chosen:
        fields = []
        for source, transform in spec:
            fields.append({"source-id": source, "field-id": field_id, "name": f"p{field_id}", "transform": transform})
            field_id += 1
        specs.append(fields)
    return specs


def _data_files(draw: st.DrawFn, table: HandMadeTable, number: int, current: int) -> list[Entry]:
    """Rows of one write, by a writer that may know an older schema: a file for each partition."""
    spec, schema = draw(_index(table.specs)), draw(st.integers(0, current))
    written = {f["id"] for f in table.schemas[schema]}
    by_partition: dict[str, list[Values]] = {}
    for row in draw(st.lists(rows, min_size=1, max_size=5)):
        known = {i: v for i, v in row.items() if i in written}
        by_partition.setdefault(repr(table.partition(known, spec)), []).append(known)
    metrics = draw(st.booleans())
    return [
        table.data_file(group, schema=schema, spec=spec, sequence_number=number, metrics=metrics)
        for group in by_partition.values()
    ]


def _delete_file(draw: st.DrawFn, table: HandMadeTable, entries: list[Entry], number: int, current: int) -> Entry:
    """Deletes about files of any partition, placed in the partition of one of them."""
    data = [e for e in entries if e.content == 0]
    aim = draw(st.sampled_from(data))
    if draw(st.booleans()):
        others = draw(st.lists(st.sampled_from(data), max_size=2))
        scoped = draw(st.booleans())
        targets = [aim] if scoped else [aim, *others]
        deleted = {(e.record["file_path"], draw(st.integers(0, e.rows - 1))) for e in targets for _ in range(2)}
        return table.position_deletes(
            sorted(deleted),
            spec=aim.spec_id,
            partition=aim.record["partition"],
            sequence_number=number,
            referenced=aim.record["file_path"] if scoped and draw(st.booleans()) else None,
            metrics=draw(st.booleans()),
        )
    schema = draw(st.integers(0, current))
    keys = [f["id"] for f in table.schemas[schema] if f["id"] in {A, B, D, F, E}]
    ids = draw(st.lists(st.sampled_from(keys), min_size=1, max_size=2, unique=True))
    return table.equality_deletes(
        draw(st.lists(rows, min_size=1, max_size=3)),
        ids,
        schema=schema,
        spec=aim.spec_id,
        partition=aim.record["partition"],
        sequence_number=number,
    )


def _vectors(draw: st.DrawFn, table: HandMadeTable, entries: list[Entry], number: int) -> list[Entry]:
    """Deletion vectors for some files that have none."""
    taken = {e.record.get("referenced_data_file") for e in entries if e.record["file_format"] == "PUFFIN"}
    free = [e for e in entries if e.content == 0 and e.record["file_path"] not in taken]
    chosen = draw(st.lists(st.sampled_from(free), max_size=2, unique_by=id)) if free else []
    vectors = [(e, draw(st.lists(st.integers(0, e.rows - 1), min_size=1))) for e in chosen]
    return table.deletion_vectors(vectors, number) if vectors else []


def _rewritten(
    draw: st.DrawFn, table: HandMadeTable, entries: list[Entry], manifests: dict[Any, dict[str, Any]], number: int
) -> list[dict[str, Any]]:
    """Some manifests carried forward, the entries of the others in new ones: kept or removed."""
    kept = {key: m for key, m in manifests.items() if draw(st.booleans())}
    groups: dict[Any, list[Entry]] = {}
    for entry in entries:
        place = (entry.spec_id, entry.content != 0)
        if (entry.sequence_number, *place) not in kept:
            status = draw(st.sampled_from([EXISTING, EXISTING, DELETED]))
            moved = copy.copy(entry)
            moved.status = status
            groups.setdefault(place, []).append(moved)
    return [*kept.values(), *(_manifest(draw, table, group, number) for group in groups.values())]


# --- filters, as text and as what they mean ---


def _negated(value: Truth) -> Truth:
    return None if value is None else not value


def _both(left: Truth, right: Truth) -> Truth:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _either(left: Truth, right: Truth) -> Truth:
    return _negated(_both(_negated(left), _negated(right)))


def _literal(value: Any) -> str:
    if isinstance(value, dt.date):
        return f"DATE '{value}'"
    return f"'{value}'" if isinstance(value, str) else str(value)


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _compared(name: str, operator: str, literal: Any) -> Filter:
    def truth(row: dict[str, Any]) -> Truth:
        return None if row[name] is None else OPERATORS[operator](row[name], literal)

    return f"{name} {operator} {_literal(literal)}", truth


def _is_in(name: str, literals: list[Any]) -> Filter:
    def truth(row: dict[str, Any]) -> Truth:
        return None if row[name] is None else row[name] in literals

    return f"{name} IN ({', '.join(map(_literal, literals))})", truth


def filters(fields: list[Field]) -> st.SearchStrategy[Filter]:
    """Filters on the columns of a schema, with the three values of SQL."""
    columns = [(f["name"], values[f["id"]].filter(lambda v: v is not None)) for f in fields if f["id"] in {A, B, D, E}]
    leaves = st.sampled_from(columns).flatmap(
        lambda c: (
            st.builds(_compared, st.just(c[0]), st.sampled_from(list(OPERATORS)), c[1])
            | st.builds(_is_in, st.just(c[0]), st.lists(c[1], min_size=1, max_size=3))
            | st.just((f"{c[0]} IS NULL", lambda row: row[c[0]] is None))
            | st.just((f"{c[0]} IS NOT NULL", lambda row: row[c[0]] is not None))
        )
    )
    return st.recursive(
        leaves,
        lambda inner: (
            inner.map(lambda f: (f"NOT ({f[0]})", lambda row: _negated(f[1](row))))
            | st.tuples(inner, inner).map(
                lambda p: (f"({p[0][0]}) AND ({p[1][0]})", lambda row: _both(p[0][1](row), p[1][1](row)))
            )
            | st.tuples(inner, inner).map(
                lambda p: (f"({p[0][0]}) OR ({p[1][0]})", lambda row: _either(p[0][1](row), p[1][1](row)))
            )
        ),
        max_leaves=3,
    )


# --- the comparison ---


def opened(hand_made: HandMadeTable) -> tuple[Table, str]:
    """The table in a lake in memory, and its metadata file."""
    lake = bergline.connect("memory:")
    lake.create_namespace("db")
    location = hand_made.finish()
    for path, content in hand_made.files.items():
        lake.catalog.io.create(path, content)
    lake.catalog.store.create(TableName(("db",), "hand"), location)
    return lake.load_table("db.hand"), location


def multiset(found: list[dict[str, Any]], names: Sequence[str]) -> Counter[str]:
    """Rows without their order; NaN equals itself, -0.0 is not 0.0."""
    return Counter(repr([row[name] for name in names]) for row in found)


def check_scan(hand_made: HandMadeTable, data: st.DataObject) -> None:
    table, location = opened(hand_made)
    read = hand_made.files.__getitem__
    fields = hand_made.schemas[-1]
    text, truth = data.draw(st.just(("true", lambda _: True)) | filters(fields))
    names = data.draw(st.lists(st.sampled_from([f["name"] for f in fields]), min_size=1, unique=True))
    expected = brute_force.read_rows(read, location, keep=truth)
    scan = table.scan(text, columns=names)
    assert multiset(scan.to_arrow().to_pylist(), names) == multiset(expected, names)

    planned = {f.file.file_path: [d.file_path for d in f.deletes] for f in scan.plan().files}
    allowed = {path: deletes for path, _, deletes in brute_force.list_files(read, location)}
    assert {row["_file"] for row in expected} <= planned.keys() <= allowed.keys()
    for path, deletes in planned.items():
        assert sorted(deletes) == allowed[path]

    snapshot = data.draw(st.sampled_from(hand_made.snapshots))
    schema_id = snapshot["schema-id"]
    columns = [f["name"] for f in hand_made.schemas[schema_id]]
    found = table.scan(snapshot_id=snapshot["snapshot-id"]).to_arrow()
    assert found.column_names == columns
    then = brute_force.read_rows(read, location, snapshot_id=snapshot["snapshot-id"], schema_id=schema_id)
    assert multiset(found.to_pylist(), columns) == multiset(then, columns)


@given(tables(2), st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_a_v2_table_reads_as_the_brute_force_reader_says(hand_made: HandMadeTable, data: st.DataObject) -> None:
    check_scan(hand_made, data)
