"""Tables, refs, scans and differences as HTML for notebooks, with the graph; every value is escaped."""

from collections.abc import Iterable, Sequence
from html import escape

from bergline.arguments import counted
from bergline.errors import BerglineError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.reports.difference import RefDifference
from bergline.reports.graph import render_graph
from bergline.reports.history import table_history
from bergline.reports.row_sample import sample_rows
from bergline.reports.schemas import columns_of
from bergline.reports.table_overview import partition_terms, ref_lines
from bergline.reports.totals import totals_of
from bergline.table.expiry.plan import size_text
from bergline.table.references.diff import RefDiff
from bergline.table.scans.scan import TableScan
from bergline.table.scans.version import readable_ms
from bergline.table.table import Table

_MOST_SNAPSHOTS = 50
_MOST_COLUMNS = 100
_MOST_ROWS = 20
_MOST_PARTITIONS = 50


def table_html(table: Table) -> str:
    """A table: what it holds, its graph and its columns."""
    metadata = table.metadata
    totals = totals_of(metadata.current_snapshot)
    facts = [
        counted(totals.rows, "row") if totals.rows is not None else None,
        size_text(totals.bytes) if totals.bytes is not None else None,
        counted(len(metadata.snapshots), "snapshot"),
        f"format version {metadata.format_version}",
        f"partitioned by {', '.join(terms)}" if (terms := partition_terms(metadata)) else None,
    ]
    columns = [(c.name, c.type, "required" if c.required else "", c.doc or "") for c in columns_of(metadata.schema)]
    return _block(
        f"Table {table.name}",
        f"<p>{escape(' · '.join(fact for fact in facts if fact))}</p>",
        history_html(metadata),
        _rows(("column", "type", "", "comment"), columns[:_MOST_COLUMNS]),
        _left_out(len(columns) - _MOST_COLUMNS, "column"),
    )


def history_html(metadata: TableMetadata) -> str:
    """The graph of the newest snapshots."""
    history = table_history(metadata)
    shown = history.part(0, _MOST_SNAPSHOTS)
    return render_graph(shown) + _left_out(len(history.entries) - _MOST_SNAPSHOTS, "snapshot")


def refs_html(metadata: TableMetadata) -> str:
    """The branches and tags of a table, with its graph."""
    lines = [
        (
            line.name,
            str(line.ref.snapshot_ref_type),
            str(line.ref.snapshot_id),
            readable_ms(line.timestamp_ms),
            "" if line.totals.rows is None else f"{line.totals.rows:,}",
            "" if line.ahead is None else f"{line.ahead} ahead, {line.behind} behind",
        )
        for line in ref_lines(metadata)
    ]
    header = ("ref", "type", "snapshot", "made", "rows", "against main")
    return _block("Branches and tags", _rows(header, lines), history_html(metadata))


def scan_html(scan: TableScan) -> str:
    """A scan: what is read, and its first rows."""
    what = "an empty table" if scan.snapshot_id is None else f"snapshot {scan.snapshot_id}"
    names = [f.name for f in scan.schema.fields]
    try:
        plan = scan.plan()
        sample = sample_rows(scan.to_batches(), names[:_MOST_COLUMNS], _MOST_ROWS)
    except BerglineError as error:
        return _block(f"Scan of {what}", f"<p>{escape(str(error))}</p>")
    rows = [["null" if value is None else value for value in row] for row in sample.rows]
    end = "" if sample.is_complete else f"<p>the first {len(rows)} rows</p>"
    files = f"<p>{escape(counted(len(plan.files), 'data file'))} · where {escape(str(scan.row_filter))}</p>"
    return _block(f"Scan of {what}", files, _rows(sample.columns, rows), end)


def diff_html(diff: RefDiff) -> str:
    """How two refs differ, from metadata alone."""
    parted = "no common ancestor" if diff.ancestor is None else f"common ancestor {diff.ancestor.snapshot_id}"
    facts = [
        parted,
        f"{counted(len(diff.only_to), 'snapshot')} only in {diff.to_ref}",
        f"{counted(len(diff.only_from), 'snapshot')} only in {diff.from_ref}",
    ]
    lines = [
        (p.partition or "all rows", *(f"{n:,}" for n in (p.added_rows, p.removed_rows, p.added_deletes)))
        for p in diff.partitions
    ]
    return _block(
        f"{diff.to_ref} against {diff.from_ref}",
        f"<p>{escape(' · '.join(facts))}</p>",
        _rows(("partition", "rows in added files", "rows in removed files", "deletes added"), lines[:_MOST_PARTITIONS]),
        _left_out(len(lines) - _MOST_PARTITIONS, "partition"),
        "".join(f"<p>{escape(change)}</p>" for change in diff.schema_changes),
    )


def difference_html(found: RefDifference) -> str:
    """How two refs differ, with some of the rows."""
    parts = [f"<p>{escape(str(problem))}</p>" for problem in found.problems]
    if found.diff is not None:
        parts.insert(0, diff_html(found.diff))
    if found.sample is not None:
        rows = [["null" if value is None else value for value in row] for row in found.sample.rows]
        parts.append(_rows(found.sample.columns, rows))
    return "".join(parts)


def _block(title: str, *parts: str) -> str:
    return f"<div><strong>{escape(title)}</strong>{''.join(parts)}</div>"


def _rows(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if body else ""


def _left_out(count: int, what: str) -> str:
    return f"<p>and {escape(counted(count, what))} more</p>" if count > 0 else ""
