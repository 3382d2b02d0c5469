"""Every way to read rows, or what tells their values, of a table whose REST catalog restricts its readers."""

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import bergline
from bergline import Table
from bergline.catalog.rest.client import tables
from bergline.errors import UnsupportedError
from bergline.reports.files import files_report
from bergline.table.inspection.metadata_tables import METADATA_TABLES
from bergline.table.scans.changelog_scan import ChangelogRange
from bergline.table.scans.version import resolve_version
from support.proxies.response_proxy import Fate
from support.proxies.restricted_server import PEOPLE, restricted_server
from support.proxies.restricting_proxy import MASKS, ROW_FILTER, RestrictingProxy

SENTENCE = (
    "cannot read table `db.people`: its catalog demands a row filter and column masks of its readers "
    r"\(`read-restrictions`\), which bergline does not apply yet"
)
_OPEN_TABLES = {"refs", "snapshots", "history", "metadata_log_entries"}


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[RestrictingProxy]:
    with restricted_server(tmp_path) as running:
        yield running


@pytest.fixture
def table(proxy: RestrictingProxy) -> Iterator[Table]:
    """The table as it is loaded with a row filter and column masks."""
    proxy.restrictions = ROW_FILTER | MASKS
    with bergline.connect(proxy.uri) as lake:
        yield lake.load_table("db.people")


def _transaction(table: Table) -> object:
    with table.transaction() as inside:
        inside.append(PEOPLE)
        return inside.scan().to_arrow()


READS: dict[str, Callable[[Table], Any]] = {
    "to_arrow": lambda t: t.scan().to_arrow(),
    "to_polars": lambda t: t.scan("id > 1").to_polars(),
    "to_pandas": lambda t: t.scan(columns=["id"]).to_pandas(),
    "to_batches": lambda t: list(t.scan(ref="work").to_batches()),
    "to_arrow_batch_reader": lambda t: t.scan().to_arrow_batch_reader().read_all(),
    "plan": lambda t: t.scan().plan(),
    "outline": lambda t: t.scan().outline(),
    "of a snapshot": lambda t: t.scan(snapshot_id=t.current_snapshot.snapshot_id).to_arrow(),
    "of a moment": lambda t: t.scan(as_of=dt.datetime.now(dt.UTC)).to_arrow(),
    "of metadata columns alone": lambda t: t.scan(columns=["_file", "_pos"]).to_arrow(),
    "appends": lambda t: t.scan_appends(t.metadata.snapshots[0].snapshot_id).to_arrow(),
    "changes": lambda t: t.changes(None).to_arrow(),
    "changes of each snapshot": lambda t: t.changes(None, net_changes=False).to_arrow(),
    "changes between branches": lambda t: t.changes("main", "work").to_arrow(),
    "changelog": lambda t: t.scan_changes(ChangelogRange()).plan(),
    "diff": lambda t: t.refs.diff("main", "work"),
    "update": lambda t: t.update({"name": "'x'"}, "id = 1"),
    "upsert": lambda t: t.upsert(PEOPLE, ["id"]),
    "delete": lambda t: t.delete("id = 1"),
    "delete a partition": lambda t: t.delete("region = 'EU'"),
    "overwrite some rows": lambda t: t.overwrite(PEOPLE, "id = 1"),
    "append its own rows": lambda t: t.append(t.scan()),
    "overwrite with its own rows": lambda t: t.overwrite(t.scan(ref="work")),
    "compact": lambda t: t.compact(),
    "rewrite_data_files": lambda t: t.rewrite_data_files(options={"rewrite-all": "true"}),
    "statistics": lambda t: t.compute_statistics(),
    "partition statistics": lambda t: t.compute_partition_statistics(),
    "read in a transaction": _transaction,
    "files report": lambda t: files_report(t, resolve_version(t.metadata)),
    **{name: (lambda t, n=name: t.inspect(n)) for name in METADATA_TABLES.keys() - _OPEN_TABLES},
}


@pytest.mark.long
@pytest.mark.parametrize("read", READS)
def test_nothing_reads_rows_or_bounds(read: str, table: Table) -> None:
    before = table.metadata_location
    with pytest.raises(UnsupportedError, match=SENTENCE) as refused:
        READS[read](table)
    assert "read it with an engine that applies them" in refused.value.hints
    assert table.refresh().metadata_location == before


@pytest.mark.parametrize("read", READS)
@pytest.mark.long
def test_everything_reads_without_restrictions(read: str, proxy: RestrictingProxy) -> None:
    proxy.restrictions = {"required-column-projections": [], "required-row-filter": None}
    with bergline.connect(proxy.uri) as lake:
        table = lake.load_table("db.people")
        assert table.metadata.read_restrictions is None
        READS[read](table)


def test_metadata_is_read_and_rows_are_appended(table: Table) -> None:
    assert [field.name for field in table.schema.fields] == ["id", "name", "region"]
    assert set(table.refs) == {"main", "work"}
    for name in _OPEN_TABLES:
        assert table.inspect(name).num_rows
    table.append(PEOPLE)
    table.set_properties({"a": "b"})
    table.refs.create_tag("v1")
    table.refs.fast_forward("main", to="main")
    assert len(table.metadata.snapshots) == 4


def test_a_commit_does_not_lift_restrictions(table: Table) -> None:
    """Its response has the metadata alone."""
    for change in (lambda: table.append(PEOPLE), lambda: table.set_properties({"a": "b"})):
        change()
        with pytest.raises(UnsupportedError, match=SENTENCE):
            table.scan().to_arrow()
    table.overwrite(PEOPLE)  # what is not read may be replaced
    with pytest.raises(UnsupportedError, match=SENTENCE):
        table.scan().to_arrow()


def test_a_commit_whose_response_is_lost_does_not_lift_them(table: Table, proxy: RestrictingProxy) -> None:
    proxy.meet([Fate("now", "nothing"), Fate(told="server")])
    table.append(PEOPLE)
    with pytest.raises(UnsupportedError, match=SENTENCE):
        table.scan().to_arrow()


def test_each_load_counts_even_if_the_table_is_the_same(proxy: RestrictingProxy) -> None:
    with bergline.connect(proxy.uri) as lake:
        table = lake.load_table("db.people")
        assert table.scan().to_arrow().num_rows == 4
        proxy.restrictions = MASKS
        with pytest.raises(UnsupportedError, match="demands column masks of its readers"):
            lake.load_table("db.people").scan().to_arrow()
        with pytest.raises(UnsupportedError, match="demands column masks of its readers"):
            table.refresh().scan().to_arrow()
        proxy.restrictions = None
        assert lake.load_table("db.people").scan().to_arrow().num_rows == 4


def test_a_server_that_says_that_nothing_changed_is_believed_for_a_while(
    proxy: RestrictingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ETag may be about the metadata alone, which a new policy does not change."""
    proxy.passes_etags = True
    with bergline.connect(proxy.uri) as lake:
        lake.load_table("db.people")
        proxy.restrictions = MASKS
        assert lake.load_table("db.people").scan().to_arrow().num_rows == 4
        monkeypatch.setattr(tables, "RESTRICTIONS_HOLD_S", 0.0)
        with pytest.raises(UnsupportedError, match="demands column masks of its readers"):
            lake.load_table("db.people").scan().to_arrow()
        monkeypatch.undo()
        with pytest.raises(UnsupportedError, match="demands column masks of its readers"):
            lake.load_table("db.people").append(PEOPLE).scan().to_arrow()
