"""Bodies of requests and responses about what is in a server's trash."""

import msgspec

from bergline.catalog.identifiers import TableName


class DroppedTableBody(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A table in the server's trash."""

    name: TableName
    metadata_location: str
    dropped_ms: int
    keep_until_ms: int
    principal: str
    purges_files: bool
    purge_begun: bool = False
    problem: str | None = None


class ListDroppedTablesResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """The tables in the server's trash, newest first, and the token of the next page, if any."""

    tables: tuple[DroppedTableBody, ...] = ()
    next_page_token: str | None = None


class UndropRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A table or view to take out of the trash, under its own name or another."""

    destination: TableName | None = None


class DroppedViewBody(msgspec.Struct, frozen=True, rename="kebab"):
    """A view in the server's trash."""

    name: TableName
    metadata_location: str
    dropped_ms: int
    keep_until_ms: int
    principal: str


class ListDroppedViewsResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """The views in the server's trash, newest first, and the token of the next page, if any."""

    views: tuple[DroppedViewBody, ...] = ()
    next_page_token: str | None = None
