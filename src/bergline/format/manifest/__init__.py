"""Manifests and manifest lists: the files of a snapshot, and inheritance of sequence numbers and row ids."""

from bergline.format.manifest.manifest import DataFile

__all__ = ["DataFile"]
