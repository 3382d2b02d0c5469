"""Requests at a ref of the lake: the first segment of their paths names it, as the configuration has said."""

from typing import Final

from bergline.catalog.at_ref.catalog_at_ref import only_on_main
from bergline.catalog.at_ref.lake_ref import LakeRef, LakeRefKind, parse_in_path
from bergline.catalog.rest.protocol.endpoints import (
    COMMIT_VIEW,
    CREATE_NAMESPACE,
    CREATE_VIEW,
    DROP_NAMESPACE,
    DROP_VIEW,
    REGISTER_TABLE,
    REGISTER_VIEW,
    RENAME_VIEW,
    UNDROP_TABLE,
    UNDROP_VIEW,
    UPDATE_NAMESPACE,
    Endpoint,
)
from bergline.catalog.rest.protocol.names import decode_name

_BEGINNINGS = ("/v1/", "/bergline/v1/")
_KINDS = tuple(f"{kind}." for kind in LakeRefKind)
_ON_MAIN_ALONE: Final = {
    UPDATE_NAMESPACE.name: "change a namespace",
    DROP_NAMESPACE.name: "drop a namespace",
    REGISTER_TABLE.name: "register a table",
    CREATE_VIEW.name: "create a view",
    REGISTER_VIEW.name: "register a view",
    COMMIT_VIEW.name: "change a view",
    RENAME_VIEW.name: "rename a view",
    DROP_VIEW.name: "drop a view",
    UNDROP_TABLE.name: "restore a table",
    UNDROP_VIEW.name: "restore a view",
}


def without_ref(path: str) -> tuple[str, str | None]:
    """A path without the ref of the lake in it, and the segment that names the ref, if there is one."""
    for beginning in _BEGINNINGS:
        if path.startswith(beginning) and path.startswith(_KINDS, len(beginning)):
            segment, slash, rest = path[len(beginning) :].partition("/")
            return f"{beginning}{rest}" if slash else path, segment
    return path, None


def ref_in_path(segment: str | None) -> LakeRef | None:
    """The ref that a segment names."""
    return None if segment is None else parse_in_path(decode_name(segment))


def check_at_ref(endpoint: Endpoint, at: LakeRef | None) -> None:
    """RefusedError for what cannot be done at a ref of the lake."""
    if at is None:
        return
    what = _ON_MAIN_ALONE.get(endpoint.name)
    if endpoint is CREATE_NAMESPACE and at.kind is not LakeRefKind.BRANCH:
        what = "create a namespace"
    if what is not None:
        raise only_on_main(what, at)
