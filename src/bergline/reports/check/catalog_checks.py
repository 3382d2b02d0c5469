"""The check of everything in a catalog that is not a table: views, the trash, and the database itself."""

from collections.abc import Iterator

from bergline.catalog.catalog import Catalog, DroppedTable, DroppedView
from bergline.catalog.identifiers import TableName
from bergline.catalog.metadata_files import table_files, view_files
from bergline.catalog.sql.consistency import implicit_namespaces, reviewed_tables, shared_pointers
from bergline.catalog.sql.records import find_sql_store
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.errors import BerglineError, FormatError, MetadataChangedError, NotFoundError, UnsupportedError
from bergline.reports.check.check import CheckProgress, check_state
from bergline.reports.check.finding import OtherCheck
from bergline.reports.check.findings import RESTORE, Findings
from bergline.reports.check.metadata_file import read_metadata
from bergline.table.orphans.catalog_tables import every_table

_PURGED = "nothing to do: a server deletes its files"


def check_others(catalog: Catalog, *, deep: bool, progress: CheckProgress | None = None) -> tuple[OtherCheck, ...]:
    """Check views, the trash, and in SQLite and PostgreSQL what the rows of the catalog say about each other."""
    found = [*_views(catalog)]
    if not catalog.keeps_dropped_tables:
        found += _trash(catalog, deep, progress)
    elif catalog.dropped_tables(1) or catalog.dropped_views(1):
        found.append(_unchecked_trash())
    store = find_sql_store(catalog)
    if store is not None:
        found.append(_check_rows(catalog, store))
    return tuple(found)


def _trash(catalog: Catalog, deep: bool, progress: CheckProgress | None) -> Iterator[OtherCheck]:
    for view in catalog.dropped_views():
        yield _check_dropped_view(catalog, view)
    for table in catalog.dropped_tables():
        checked = _check_dropped_table(catalog, table, deep, progress)
        # else it was restored, or is being purged
        if checked.ok or any(now == table for now in catalog.dropped_tables()):
            yield checked


def _unchecked_trash() -> OtherCheck:
    """A server vends no credentials for the files of what is in its trash."""
    findings = Findings()
    message = "the trash was not checked: the server vends no credentials for its files"
    findings.note("trash-unchecked", "the trash", message, "check it with --catalog as `bergline serve` has it")
    return OtherCheck("trash", None, *findings.finish(None))


def _views(catalog: Catalog) -> Iterator[OtherCheck]:
    for namespace in catalog.list_namespaces():
        try:
            names = catalog.list_views(namespace)
        except NotFoundError:  # dropped since it was listed
            continue
        for name in names:
            checked = _check_view(catalog, name)
            if checked is not None:
                yield checked


def _check_view(catalog: Catalog, name: TableName) -> OtherCheck | None:
    what, findings = f"view {name}", Findings()
    try:
        return OtherCheck(what, catalog.load_view(name).metadata_location)
    except BerglineError as error:
        if isinstance(error, NotFoundError) and error.kind != "file":  # dropped since it was listed
            return None
        _tell(findings, "view", f"view `{name}`", error)
    return OtherCheck(what, None, *findings.finish(None))


def _check_dropped_view(catalog: Catalog, dropped: DroppedView) -> OtherCheck:
    findings = Findings()
    try:
        view_files(catalog.io).load(dropped.metadata_location)
    except BerglineError as error:
        _tell(findings, "dropped view", dropped.metadata_location, error)
    return OtherCheck(f"dropped view {dropped.name}", dropped.metadata_location, *findings.finish(None))


def _check_dropped_table(
    catalog: Catalog, dropped: DroppedTable, deep: bool, progress: CheckProgress | None
) -> OtherCheck:
    what, place, findings = f"dropped table {dropped.name}", dropped.metadata_location, Findings()
    if dropped.purge_begun:
        findings.note("purge-begun", place, "it cannot be restored: its files are being deleted", _PURGED)
        return OtherCheck(what, place, *findings.finish(None))
    metadata = read_metadata(catalog.io, place, None, findings)
    if metadata is not None:

        def show(phase: str, done: int, total: int) -> None:
            if progress is not None:
                progress(what, phase, done, total)

        check_state(catalog, metadata, place, findings, show, deep=deep)
    if dropped.problem is not None:
        findings.warning("purge-failed", place, dropped.problem, "the server tries again; repair what it names")
    return OtherCheck(what, place, *findings.finish(metadata))


def _check_rows(catalog: Catalog, store: SqlPointerStore) -> OtherCheck:
    database, findings = store.database, Findings()
    for namespace in implicit_namespaces(database, store.catalog_name):
        findings.note(
            "namespace-implicit",
            f"namespace `{namespace}`",
            "it has no row of its own: it exists only while tables or views are in it",
            "set a property of it to keep it",
        )
    for shared in shared_pointers(database, store.catalog_name):
        names = ", ".join(f"`{name}`" for name in shared.names)
        message = f"{names} point to the same metadata file: a commit to one is not seen by the others"
        findings.warning("pointer-shared", shared.metadata_location, message, "unregister all but one of them")
    _check_reviews(catalog, store, findings)
    return OtherCheck("catalog", None, *findings.finish(None))


def _check_reviews(catalog: Catalog, store: SqlPointerStore, findings: Findings) -> None:
    """Rows about snapshots of tables that are neither in the catalog nor in the trash."""
    reviewed = reviewed_tables(store.database, store.catalog_name)
    if not reviewed:
        return
    known = set(_uuids(catalog))
    for table in reviewed:
        for uuid in sorted(table.rows.keys() - known):
            message = f"{table.rows[uuid]:,} rows are about a table that is gone, or whose metadata cannot be read"
            findings.note("review-of-nothing", f"`{table.kept_in}`, table {uuid}", message, "nothing to do")


def _uuids(catalog: Catalog) -> Iterator[str | None]:
    files, places = table_files(catalog.io), [dropped.metadata_location for dropped in catalog.dropped_tables()]
    for name in every_table(catalog):
        try:
            places.append(catalog.pointer(name))
        except BerglineError:
            continue
    for place in places:
        try:
            yield files.load(place).table_uuid
        except BerglineError:
            continue


def _tell(findings: Findings, what: str, place: str, error: BerglineError) -> None:
    """Add the finding that an error in reading a view stands for."""
    code = what.replace(" ", "-")
    if isinstance(error, UnsupportedError):
        findings.warning(f"{code}-unsupported", place, str(error), "check it with the engine that wrote it")
    elif isinstance(error, NotFoundError):
        findings.error(f"{code}-missing", place, f"the metadata file of the {what} does not exist", RESTORE)
    elif isinstance(error, FormatError | MetadataChangedError):
        findings.error(f"{code}-unreadable", place, str(error), RESTORE)
    else:
        findings.warning(f"{code}-unchecked", place, str(error), "check it with access to its files")
