"""The error of a file that a snapshot needs and that is gone; tasks on executors raise it too."""

from bergline.errors import NotFoundError


def missing_file(kind: str, path: str, snapshot_id: int | str | None) -> NotFoundError:
    """The error: `kind` is data or delete. `read_errors` knows it again by its text."""
    return NotFoundError(f"no {kind} file {path}, which snapshot {snapshot_id} needs", kind="file", name=path)
