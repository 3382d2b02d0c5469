"""The check of one table, or of all: everything that its snapshots reach is checked, and nothing is changed."""

from collections.abc import Callable

from bergline.catalog.catalog import Catalog
from bergline.catalog.identifiers import Namespace, TableName, parse_namespace
from bergline.errors import BerglineError, NotFoundError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.lake.lake import Lake
from bergline.reports.check.files import check_contents, check_files, check_statistics, content_files, files_beside
from bergline.reports.check.finding import CheckReport, TableCheck
from bergline.reports.check.findings import Findings
from bergline.reports.check.heads import check_heads
from bergline.reports.check.manifests import check_manifest_lists, check_manifests
from bergline.reports.check.metadata_checks import check_metadata
from bergline.reports.check.metadata_file import read_pointed_metadata
from bergline.table.orphans.catalog_tables import every_table
from bergline.table.table_selection import TableNames, named_tables

_MOST_ATTEMPTS = 3
CheckProgress = Callable[[str, str, int, int], object]
"""Called with the table, what is being checked, how many are done, and how many there are."""


def check_tables(
    lake: Lake,
    *,
    tables: TableNames | None = None,
    namespace: str | Namespace | None = None,
    deep: bool = False,
    progress: CheckProgress | None = None,
) -> CheckReport:
    """Check the named tables, those in a namespace and below it, or all; a `deep` check opens every file.

    NotFoundError if a table that is named does not exist.
    """
    if tables is not None:
        return CheckReport(
            deep, tuple(check_table(lake.catalog, n, deep=deep, progress=progress) for n in named_tables(tables))
        )
    below = () if namespace is None else parse_namespace(namespace)
    found = []
    for name in every_table(lake.catalog, below):
        try:
            found.append(check_table(lake.catalog, name, deep=deep, progress=progress))
        except NotFoundError:  # dropped since it was listed
            continue
    return CheckReport(deep, tuple(found))


def check_table(
    catalog: Catalog, name: TableName, *, deep: bool = False, progress: CheckProgress | None = None
) -> TableCheck:
    """Check a table; again if it changed meanwhile, because expiry may have deleted files that were needed before."""
    attempt = 1
    while True:
        found = _check(catalog, name, deep, progress)
        if not found.findings or attempt == _MOST_ATTEMPTS or not _has_moved(catalog, name, found.metadata_location):
            return found
        attempt += 1


def _check(catalog: Catalog, name: TableName, deep: bool, progress: CheckProgress | None) -> TableCheck:
    findings = Findings()
    location, metadata = read_pointed_metadata(catalog, name, findings)
    if metadata is None:
        return TableCheck(str(name), location, *findings.finish(None))

    def show(what: str, done: int, total: int) -> None:
        if progress is not None:
            progress(str(name), what, done, total)

    counts = check_state(catalog, metadata, location or f"table `{name}`", findings, show, deep=deep)
    return TableCheck(str(name), location, *findings.finish(metadata), *counts)


def check_state(
    catalog: Catalog,
    metadata: TableMetadata,
    place: str,
    findings: Findings,
    show: Callable[[str, int, int], None],
    *,
    deep: bool,
) -> tuple[int, int, int, int]:
    """Check one state of a table; returns how many snapshots, manifests, files and bytes it has."""
    io = catalog.io
    check_metadata(metadata, place, findings)
    listed = check_manifest_lists(io, metadata, findings, show)
    entries = check_manifests(io, metadata, listed, findings, show)
    check_heads(metadata, listed, entries, findings)
    needed = listed.snapshots_of()
    files = content_files(entries, needed)
    check_files(io, metadata, [*files, *files_beside(metadata)], findings, show)
    check_statistics(io, metadata, findings)
    if deep:
        check_contents(io, entries, needed, findings, show)
    return len(metadata.snapshots), len(listed.manifests), len(files), sum(file.size or 0 for file in files)


def _has_moved(catalog: Catalog, name: TableName, location: str | None) -> bool:
    try:
        return catalog.pointer(name) != location
    except BerglineError:
        return False
