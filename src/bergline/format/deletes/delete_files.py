"""The columns of delete files, and which data file a position delete file refers to."""

from typing import Any

from bergline.format.manifest.manifest import DataFile
from bergline.format.schema.reserved import DELETE_FILE_PATH, DELETE_POS
from bergline.format.schema.schema import Schema
from bergline.format.types.single_values import decode_value
from bergline.format.types.types import STRING

FILE_PATH_ID = DELETE_FILE_PATH.id
POS_ID = DELETE_POS.id
POSITION_DELETE_SCHEMA = Schema(fields=(DELETE_FILE_PATH, DELETE_POS))


def only_data_file(delete: DataFile) -> str | None:
    """The only data file that a position delete file refers to; None if it may refer to several."""
    if delete.referenced_data_file is not None:
        return delete.referenced_data_file
    lower = (delete.lower_bounds or {}).get(FILE_PATH_ID)
    upper = (delete.upper_bounds or {}).get(FILE_PATH_ID)
    path: Any = decode_value(STRING, lower) if lower is not None and lower == upper else None
    return path if isinstance(path, str) else None
