"""What delete files hold: reserved columns, and which data file a position delete file is about."""

from typing import Any

from bergline.format.manifest import DataFile
from bergline.format.schema import Schema
from bergline.format.types import LONG, STRING, NestedField
from bergline.format.values import decode_value

FILE_PATH_ID = 2147483546
POS_ID = 2147483545
POSITION_DELETE_SCHEMA = Schema(
    fields=(NestedField(FILE_PATH_ID, "file_path", True, STRING), NestedField(POS_ID, "pos", True, LONG))
)


def only_data_file(delete: DataFile) -> str | None:
    """The one data file that a position delete file is about; None if it may be about several."""
    if delete.referenced_data_file is not None:
        return delete.referenced_data_file
    lower = (delete.lower_bounds or {}).get(FILE_PATH_ID)
    upper = (delete.upper_bounds or {}).get(FILE_PATH_ID)
    path: Any = decode_value(STRING, lower) if lower is not None and lower == upper else None
    return path if isinstance(path, str) else None
