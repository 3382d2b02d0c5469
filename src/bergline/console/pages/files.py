"""The files of a table at a ref: sizes, partitions, deletes that wait for compaction."""

from bergline.console.page import Page, PageQuery, Source
from bergline.console.pages.values import (
    asked_number,
    broken_page,
    found_table,
    pages_around,
    plain,
    table_values,
)
from bergline.format.metadata.refs import MAIN
from bergline.reports.files import SizeBin, files_report
from bergline.reports.schemas import version_at
from bergline.reports.units import render_size

_PARTITIONS = 200
_MOST = 10**8


def files_page(source: Source, query: PageQuery) -> Page:
    """The files at `ref`, with the partitions from `offset` on."""
    found = found_table(source, query)
    if found.table is None:
        return broken_page(found)
    ref = query.get("ref") or MAIN
    report = files_report(found.table, version_at(found.table.metadata, ref))
    offset = asked_number(query, "offset", 0, _MOST)
    most = max((one.files for one in report.histogram), default=0)
    values = {
        **table_values(source, found.table, report.problems),
        "ref": ref,
        "snapshot_id": None if report.snapshot_id is None else str(report.snapshot_id),
        "manifests": report.manifests,
        "manifest_bytes": report.manifest_bytes,
        "counts": {**plain(report.counts), "delete_files": report.counts.delete_files},
        "target_bytes": report.target_bytes,
        "small_bytes": report.small_bytes,
        "histogram": [_bin(one, most) for one in report.histogram],
        "partitions": [
            {**plain(line), "delete_files": line.counts.delete_files}
            for line in report.partitions[offset : offset + _PARTITIONS]
        ],
        "partition_count": len(report.partitions),
        **pages_around(offset, _PARTITIONS, len(report.partitions)),
    }
    return Page(f"Files of {found.name}", "files.html", values)


def _bin(one: SizeBin, most: int) -> dict[str, object]:
    """A bin of the histogram with its label, and the length of its bar in hundredths."""
    low, high = _bound(one.from_bytes), None if one.to_bytes is None else _bound(one.to_bytes)
    label = f"{low} or more" if high is None else f"less than {high}" if not one.from_bytes else f"{low} to {high}"
    return {**plain(one), "label": label, "length": -(-100 * one.files // most)}


def _bound(size: int) -> str:
    """A bound, which is whole in its unit."""
    number, unit = render_size(size).split(" ")
    return f"{float(number):g} {unit}"
