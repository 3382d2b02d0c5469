"""Hypothesis strategies for hand-made tables: evolved schemas, several specs, every kind of delete, moved entries."""

import copy
import datetime as dt
import json
from collections.abc import Sequence
from typing import Any

from hand_made import DELETED, EXISTING, LINEAGE, Entry, Field, HandMadeTable, Values
from hypothesis import strategies as st

A, B, D, F, S, L, E = 1, 2, 3, 4, 5, 6, 7
"""Ids of the columns: long, text, date, double, struct, list, and one that comes later."""

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
NAME_MAPPING = [
    *({"field-id": f["id"], "names": [f["name"]]} for f in FIRST_SCHEMA[:4]),
    {"field-id": S, "names": ["s"], "fields": [{"field-id": 11, "names": ["x", "other"]}]},
    {"field-id": L, "names": ["l"], "fields": [{"field-id": 13, "names": ["element"]}]},
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
_DAYS = [dt.date(2026, 1, 1), dt.date(2026, 1, 31), dt.date(2026, 2, 1), dt.date(1969, 12, 31)]
VALUES: dict[int, st.SearchStrategy[Any]] = {
    A: st.none() | st.integers(-3, 9),
    B: st.none() | st.sampled_from(["", "x", "xy", "xyz", "é", "z"]),
    D: st.none() | st.sampled_from(_DAYS),
    F: st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")]),
    S: st.none() | st.fixed_dictionaries({11: st.none() | st.integers(0, 2), 12: st.none() | st.just("y")}),
    L: st.none() | st.lists(st.none() | st.integers(0, 2), max_size=2),
    E: st.none() | st.integers(0, 3),
}
_rows = st.fixed_dictionaries(VALUES)
_lineage = st.fixed_dictionaries({f["id"]: st.none() | st.integers(0, 50) for f in LINEAGE})


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
    swapped = {A: names.get(E, names[A]), E: names[A]}
    return [{**f, "name": swapped.get(f["id"], f["name"])} for f in fields]


def add_column(fields: list[Field]) -> list[Field]:
    return [*fields, {"id": E, "name": "e", "required": False, "type": "int"}] if _lacks_added(fields) else fields


def add_default(fields: list[Field]) -> list[Field]:
    added = {"id": E, "name": "e", "required": True, "type": "int", "initial-default": 2, "write-default": 3}
    return [*fields, added] if _lacks_added(fields) else fields


def evolve_struct(fields: list[Field]) -> list[Field]:
    """A field of the struct is renamed and widened, another takes its name."""
    fields = copy.deepcopy(fields)
    struct = next(f for f in fields if f["id"] == S)["type"]
    struct["fields"] = [
        {"id": 12, "name": "x", "required": False, "type": "string"},
        {"id": 11, "name": "x_old", "required": False, "type": "long"},
    ]
    return fields


def date_to_timestamp(fields: list[Field]) -> list[Field]:
    return [{**f, "type": "timestamp"} if f["id"] == D else f for f in fields]


def _lacks_added(fields: list[Field]) -> bool:
    return all(f["id"] != E for f in fields)


@st.composite
def tables(
    draw: st.DrawFn, version: int, location: str = "memory://warehouse/db/hand", names: Sequence[str] = ("f{}",)
) -> HandMadeTable:
    """A table with a history: each commit adds data and deletes, a later one rewrites manifests and removes files."""
    specs = _specs(draw)
    table = HandMadeTable(version, location, _schemas(draw, version, specs), specs, names=names)
    table.properties["schema.name-mapping.default"] = json.dumps(NAME_MAPPING)
    current = sorted(draw(_index(table.schemas)) for _ in range(draw(st.integers(1, 3))))
    entries: list[Entry] = []
    for number, schema in enumerate(current, 1):
        for _ in range(draw(st.integers(1, 2))):
            entries += _data_files(draw, table, number, schema)
        if version > 1:
            entries += [_delete_file(draw, table, entries, number, schema) for _ in range(draw(st.integers(0, 2)))]
        if version >= 3:
            entries += _vectors(draw, table, entries, number)
    manifests: dict[Any, dict[str, Any]] = {}
    for number, schema in enumerate(current, 1):
        added = [e for e in entries if e.sequence_number == number]
        for place, group in _by_place(added).items():
            manifests[number, *place] = _manifest(draw, table, group, number)
        known = [m for (n, *_), m in manifests.items() if n <= number]
        may_name = version == 1 and all(m["partition_spec_id"] == 0 for m in known)
        table.snapshot(known, number, schema, has_list=not may_name or draw(st.booleans()))
    if draw(st.booleans()):
        number = len(current) + 1
        table.snapshot(_rewritten(draw, table, entries, manifests, number), number, len(table.schemas) - 1)
    return table


def comparable(fields: list[Field]) -> dict[str, st.SearchStrategy[Any]]:
    """Columns that a filter may name, with values to compare them with."""
    columns = {f["name"]: VALUES[f["id"]] for f in fields if f["id"] in {A, B, D, E} and f["type"] != "timestamp"}
    columns |= {f["name"]: st.sampled_from([0.0, 1.5, -2.5]) for f in fields if f["id"] == F}
    parts = next(f["type"]["fields"] for f in fields if f["id"] == S)
    return columns | {f"s.{p['name']}": st.just("y") if p["type"] == "string" else st.integers(0, 2) for p in parts}


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


def _schemas(draw: st.DrawFn, version: int, specs: list[list[Field]]) -> list[list[Field]]:
    known = [rename, widen, reverse, drop_double, swap_names, add_column, evolve_struct]
    if version >= 3:
        known.append(add_default)
        # a date may become a timestamp only if no partition depends on it
        known += [] if any(f["source-id"] == D for spec in specs for f in spec) else [date_to_timestamp]
    schemas = [FIRST_SCHEMA]
    for evolve in draw(st.lists(st.sampled_from(known), max_size=4, unique=True)):
        schemas.append(evolve(schemas[-1]))
    return schemas


def _data_files(draw: st.DrawFn, table: HandMadeTable, number: int, current: int) -> list[Entry]:
    """Rows of one write, by a writer that may know an older schema: a file for each partition."""
    spec, schema = draw(_index(table.specs)), draw(st.integers(0, current))
    fields = {f["id"]: f for f in table.schemas[schema]}
    lineage = table.version >= 3 and draw(st.booleans())
    by_partition: dict[str, list[Values]] = {}
    for row in draw(st.lists(_rows, min_size=1, max_size=5)):
        known = {i: _storable(v, fields[i]) for i, v in row.items() if i in fields}
        stored = known | draw(_lineage) if lineage else known
        by_partition.setdefault(repr(table.partition(stored, spec)), []).append(stored)
    identity = [f["source-id"] for f in table.specs[spec] if f["transform"] == "identity"]
    metrics, omits = draw(st.booleans()), draw(st.booleans())
    ids = schema > 0 or lineage or draw(st.booleans())
    return [
        table.data_file(
            group,
            schema=schema,
            spec=spec,
            sequence_number=number,
            metrics=metrics,
            ids=ids,
            omits=identity if omits else (),
            lineage=lineage,
        )
        for group in by_partition.values()
    ]


def _storable(value: Any, column: Field) -> Any:
    if value is None and column["required"]:
        return 0
    return dt.datetime.combine(value, dt.time()) if column["type"] == "timestamp" and value is not None else value


def _delete_file(draw: st.DrawFn, table: HandMadeTable, entries: list[Entry], number: int, current: int) -> Entry:
    """Deletes about files of any partition, placed in the partition of one of them."""
    data = [e for e in entries if e.content == 0]
    aim = draw(st.sampled_from(data))
    if draw(st.booleans()):
        scoped = draw(st.booleans())
        targets = [aim] if scoped else [aim, *draw(st.lists(st.sampled_from(data), max_size=2))]
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
    keys = {f["id"]: f for f in table.schemas[schema] if f["id"] in {A, B, D, F, E}}
    ids = draw(st.lists(st.sampled_from(sorted(keys)), min_size=1, max_size=2, unique=True))
    return table.equality_deletes(
        [{i: _storable(row[i], keys[i]) for i in ids} for row in draw(st.lists(_rows, min_size=1, max_size=3))],
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


def _by_place(entries: list[Entry]) -> dict[tuple[int, bool], list[Entry]]:
    """Entries that may stand in one manifest: of one spec, data or deletes."""
    groups: dict[tuple[int, bool], list[Entry]] = {}
    for entry in entries:
        groups.setdefault((entry.spec_id, entry.content != 0), []).append(entry)
    return groups


def _manifest(draw: st.DrawFn, table: HandMadeTable, entries: list[Entry], number: int) -> dict[str, Any]:
    has_row_ids = table.version >= 3 and entries[0].content == 0 and draw(st.booleans())
    return table.manifest(
        entries,
        sequence_number=number,
        snapshot_id=999 + number,
        schema=draw(_index(table.schemas)),
        first_row_id=draw(st.integers(0, 1000)) if has_row_ids else None,
    )


def _rewritten(
    draw: st.DrawFn, table: HandMadeTable, entries: list[Entry], manifests: dict[Any, dict[str, Any]], number: int
) -> list[dict[str, Any]]:
    """Some manifests carried forward, the entries of the others in new ones: kept or removed."""
    kept = {key: m for key, m in manifests.items() if draw(st.booleans())}
    moved = []
    for entry in entries:
        if (entry.sequence_number, entry.spec_id, entry.content != 0) not in kept:
            copied = copy.copy(entry)
            copied.status = draw(st.sampled_from([EXISTING, EXISTING, DELETED]))
            if entry.content == 0 and table.version >= 3:
                copied.record = {**entry.record, "first_row_id": draw(st.none() | st.integers(0, 1000))}
            moved.append(copied)
    return [*kept.values(), *(_manifest(draw, table, group, number) for group in _by_place(moved).values())]
