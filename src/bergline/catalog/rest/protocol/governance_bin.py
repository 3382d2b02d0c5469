"""Bodies of requests and responses about views in a server's bin."""

import msgspec

from bergline.catalog.identifiers import TableName


class DroppedViewBody(msgspec.Struct, frozen=True, rename="kebab"):
    """A view in the server's bin."""

    name: TableName
    metadata_location: str
    dropped_ms: int
    keep_until_ms: int
    principal: str


class ListDroppedViewsResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """The views in the server's bin, newest first, and the token of the next page, if any."""

    views: tuple[DroppedViewBody, ...] = ()
    next_page_token: str | None = None


class UndropViewRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A view to take out of the bin, under its own name or another."""

    destination: TableName | None = None
