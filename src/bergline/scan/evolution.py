"""Whether columns can be found in a table's files by name, or only by field id."""

import re

from bergline.format.metadata import TableMetadata
from bergline.format.types import IcebergType, child_fields

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NAME_MAPPING = "schema.name-mapping.default"


def why_not_by_name(metadata: TableMetadata) -> str | None:
    """Why files may not be read by the schema's names: a column was renamed, retyped, replaced or has a default."""
    if NAME_MAPPING in metadata.properties:
        return "the table has a name mapping: files may have come from elsewhere"
    if len(metadata.schemas) != max(s.schema_id or 0 for s in metadata.schemas) + 1:
        return "schemas that older files were written with are no longer known"
    by_id: dict[int, tuple[str, IcebergType | None]] = {}
    by_name: dict[str, int] = {}
    for schema in metadata.schemas:
        for name, field in schema.names.items():
            if not _PLAIN_NAME.fullmatch(field.name):
                return f"column `{name}` may stand in files under another name, made of letters, digits and _"
            if field.initial_default is not None:
                return f"column `{name}` has a value in files that are older than it"
            type_ = None if child_fields(field.type) else field.type
            if by_id.setdefault(field.id, (name, type_)) != (name, type_):
                return f"column `{name}` was renamed or has changed its type"
            if by_name.setdefault(name.casefold(), field.id) != field.id:
                return f"column `{name}` replaced another one of that name"
    return None
