"""`bergline accept-metadata`: accept a table or view whose metadata file is not the one that was written."""

import time
from typing import Annotated

import typer

from bergline.catalog.identifiers import parse_table_name
from bergline.catalog.metadata_digests import digest_of
from bergline.catalog.protection.caller import current_caller
from bergline.catalog.sql.records import AuditEntry, Records, sql_store_of
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.plans import Yes, confirm
from bergline.cli.output.rows import AsJson, print_json, print_lines
from bergline.errors import NotFoundError

app = typer.Typer()
ACCEPTED = "accept-metadata"
"""The operation of its row in the audit log."""


@app.command()
@with_lake
def accept_metadata(
    options: LakeOptions,
    name: Annotated[str, typer.Argument(help="A table or view, e.g. db.orders", metavar="NAME")],
    *,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Accept the metadata file of a table or view as it is in the store now, although the catalog wrote another one.

    Inspect it first: whoever changed it may have removed rules or snapshots. The audit log gets a row.
    """
    table = parse_table_name(name)
    with options.open() as lake:
        store = sql_store_of(lake.catalog)
        kind, location = "table", store.read(table)
        if location is None and store.views is not None:
            kind, location = "view", store.views.read(table)
        if location is None:
            raise NotFoundError(f"no table or view `{name}`", kind="table", name=name)
        data = lake.catalog.io.read(location)
        found, kept = digest_of(data), store.digests.find(location)
        if found == kept:
            text = f"the metadata file of {kind} `{name}` is the one that was written"
        else:
            known = "none is known" if kept is None else f"{kept} was written"
            confirm(f"accept the metadata file of {kind} `{name}`: found {found}, {known}, at {location}", yes)
            resource = f"{kind}/{'.'.join(table.namespace)}/{table.name}"
            now = time.time_ns() // 1_000_000
            entry = AuditEntry(now, current_caller().name, ACCEPTED, resource, metadata_location=location)
            with store.database.changing() as connection:
                store.digests.accept(connection, location, data)
                Records(store.database, store.catalog_name).add_audit(connection, entry)
            text = f"accepted the metadata file of {kind} `{name}` at {location}"
    if as_json:
        print_json({"name": name, "kind": kind, "metadata_location": location, "accepted": found != kept})
    else:
        print_lines([text])
