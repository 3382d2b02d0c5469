"""Random histories with planted strays: exactly the old ones go, and every ref reads as before."""

from typing import Any

import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st

from bergline import Lake, Table
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import BerglineError
from bergline.io.memory import MemoryFileIO
from bergline.io.schemes import SchemeFileIO
from bergline.table.commits.retry import Timing

DAY_MS = 86_400_000
SCHEMA = pa.schema([("n", pa.int64()), ("_k", pa.string())])
KEYS = ("a", "b c", "d/e%", "ü+")
places = st.sampled_from(["data", "metadata", "data/_k=a", "data/_k=b+c", "other/deep", "data/_tmp", ".hidden"])
branches = st.sampled_from(["main", "dev"])
steps = st.one_of(
    st.tuples(st.just("append"), branches, st.sampled_from(KEYS)),
    st.tuples(st.just("append"), branches, st.sampled_from(KEYS)),
    st.tuples(st.just("delete"), branches, st.integers(0, 9)),
    st.tuples(st.just("compact"), branches, st.none()),
    st.tuples(st.just("branch"), st.just("dev"), st.none()),
    st.tuples(st.just("drop branch"), st.just("dev"), st.none()),
    st.tuples(st.just("tag"), branches, st.integers(0, 2)),
    st.tuples(st.just("expire"), st.just("main"), st.none()),
    st.tuples(st.just("wait"), st.just("main"), st.integers(1, 4)),
    st.tuples(st.just("plant"), places, st.integers(0, 3)),
    st.tuples(st.just("sweep"), st.just("main"), st.none()),
)


class World:
    """A table in memory, its clock, and the strays that were planted with the time of each."""

    def __init__(self, version: str, mode: str) -> None:
        self.ms = 1_700_000_000_000
        self.strays: dict[str, int] = {}
        self.rows = 0
        io = SchemeFileIO({"memory": MemoryFileIO(clock_ms=self.clock)})
        catalog = PointerCatalog(MemoryPointerStore(), io, "memory://warehouse")
        self.lake = Lake(catalog, "lake", timing=Timing(clock_ms=self.clock))
        self.lake.create_namespace("db")
        properties = {"format-version": version, "write.delete.mode": mode}
        self.table = self.lake.create_table("db.t", SCHEMA, partition_by=["_k"], properties=properties)

    def clock(self) -> int:
        self.ms += 1
        return self.ms

    def take(self, kind: str, where: str, value: Any) -> None:
        match kind:
            case "append":
                self.rows += 2
                rows = [{"n": self.rows - i, "_k": value} for i in (1, 0)]
                self.table.append(pa.Table.from_pylist(rows, schema=SCHEMA), branch=where)
            case "delete":
                self.table.delete(f"n = {value}", branch=where)
            case "compact":
                self.table.compact(branch=where)
            case "branch":
                self.table.refs.create_branch(where)
            case "drop branch":
                self.table.refs.drop_branch(where)
            case "tag":
                self.table.refs.create_tag(f"tag {value}", at=where)
            case "expire":
                self.table.expire()
            case "wait":
                self.ms += value * DAY_MS
            case "plant":
                location = f"{self.table.location}/{where}/stray {len(self.strays)}%"
                self.table.io.create(location, bytes(value))
                self.strays[location] = self.ms
            case "sweep":
                self.sweep()

    def sweep(self) -> None:
        before = read(self.table)
        plan = self.table.plan_orphans()
        old = {
            name for name, ms in self.strays.items() if ms < plan.cutoff_ms and "_tmp" not in name and "/.h" not in name
        }
        assert {f.location for f in plan.files} == old
        result = self.table.sweep_orphans(plan)
        assert (set(result.deleted), result.failed, result.spared) == (old, (), ())
        event("something was swept" if old else "nothing was to sweep")
        for name in old:
            del self.strays[name]
        assert read(self.lake.load_table("db.t")) == before


def is_hidden(name: str) -> bool:
    return "/_tmp/" in name or "/.hidden/" in name


def read(table: Table) -> dict[str, list[int]]:
    return {ref: sorted(table.scan(ref=ref).to_arrow()["n"].to_pylist()) for ref in table.metadata.refs}


@settings(max_examples=40)
@given(st.sampled_from(["2", "3"]), st.sampled_from(["copy-on-write", "merge-on-read"]), st.lists(steps, max_size=20))
def test_exactly_the_old_strays_go(version: str, mode: str, taken: list[tuple[str, str, Any]]) -> None:
    world = World(version, mode)
    for kind, where, value in taken:
        try:
            world.take(kind, where, value)
        except BerglineError:  # no such branch, or one that exists: nothing has changed
            event(f"refused: {kind}")
    world.take("wait", "main", 4)
    world.sweep()
    assert all(map(is_hidden, world.strays))
