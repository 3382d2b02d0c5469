"""Bring a table or a view back from the trash."""

from bergline.catalog.catalog import DroppedTable, DroppedView
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.named_pointers import NameKind, newest_dropped
from bergline.console.actions.equivalents import command
from bergline.console.actions.review import Equivalents, Review, fingerprint
from bergline.errors import AlreadyExistsError, ConflictError
from bergline.lake.lake import Lake
from bergline.quoting import dotted
from bergline.reports.units import render_age


def review_undrop(lake: Lake, kind: NameKind, name: TableName, to: TableName | None, now_ms: int) -> Review:
    """What would come back; NotFoundError if it is not in the trash, AlreadyExistsError if the name is taken."""
    dropped: DroppedTable | DroppedView
    if kind == "table":
        dropped = newest_dropped(kind, lake.dropped_tables(), name)
        _check_whole(dropped)
        keeps = "with all its snapshots, branches and tags"
    else:
        dropped = newest_dropped(kind, lake.dropped_views(), name)
        keeps = "with its query and all its versions"
    new = to or name
    for taken, exists in (("table", lake.table_exists), ("view", lake.view_exists)):
        if exists(new):
            raise AlreadyExistsError(
                f"{taken} `{new}` exists already", kind=taken, name=str(new), hints=["give it another name"]
            )

    def do() -> str:
        if kind == "table":
            lake.undrop_table(name, to)
        else:
            lake.undrop_view(name, to)
        return "done"

    age = render_age(dropped.dropped_ms, now_ms)
    return Review(
        (f"{kind} `{name}`, dropped {age} by `{dropped.principal}`, comes back as `{new}`, {keeps}",),
        _equivalents(kind, name, to),
        fingerprint(kind, str(name), str(new), dropped.metadata_location, dropped.dropped_ms),
        do,
    )


def _check_whole(dropped: DroppedTable) -> None:
    if dropped.purge_begun:
        raise ConflictError(f"table `{dropped.name}` cannot come back: its files are being deleted")


def _equivalents(kind: NameKind, name: TableName, to: TableName | None) -> Equivalents:
    other = "" if to is None else f", to={str(to)!r}"
    moved = "" if to is None else f" TO {dotted((*to.namespace, to.name))}"
    return Equivalents(
        f"lake.undrop_{kind}({str(name)!r}{other})",
        f"UNDROP {kind.upper()} {dotted((*name.namespace, name.name))}{moved}",
        command(f"{kind} undrop", str(name), to=None if to is None else str(to)),
    )
