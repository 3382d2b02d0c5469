"""Manifests and manifest lists: the files of a snapshot, and how entries inherit what is left out."""

from bergline.format.manifest.manifest import DataFile

__all__ = ["DataFile"]
