"""Upper limits of the deletes of data files, without keeping deletes that are each about one data file."""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from bergline.format.deletes.delete_files import FILE_PATH_ID
from bergline.format.manifest.columns import entries_of
from bergline.format.manifest.manifest import (
    ROW_FORMATS,
    FileContent,
    ManifestEntry,
    ManifestFile,
)
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.delete_index import DeleteIndex
from bergline.scan.planned_files import FileGroup
from bergline.scan.planner import each_live_group
from bergline.scan.pruning import values_of

_VECTORS = "PUFFIN"
_ABOUT = {
    "path": pl.UInt64,
    "partition": pl.UInt64,
    "number": pl.Int64,
    "rows": pl.Int64,
    "vectors": pl.UInt32,
    "strange": pl.Boolean,
}
"""A delete about one data file: the hashes of its path and partition, and the counts."""


class DeleteTallies:
    """The deletes of a snapshot, counted by data file; some of those counted may turn out not to apply."""

    def __init__(
        self, io: FileIO, manifests: Sequence[ManifestFile], metadata: TableMetadata, *, of_several: bool
    ) -> None:
        """Count the deletes in delete manifests, with or without those that are about several data files."""
        about: list[pl.DataFrame] = [pl.DataFrame(schema=_ABOUT)]
        several: list[ManifestEntry] = []
        for one in each_live_group(io, manifests, metadata, lambda group: _counted(group, of_several=of_several)):
            about.append(one.about)
            several += one.several
        self._about = (
            pl.concat(about)
            .group_by("path")
            .agg(
                pl.len().alias("deletes"),
                pl.col("rows", "vectors").sum(),
                pl.col("number").filter(pl.col("vectors") > 0).min().alias("oldest_vector"),
                pl.col("partition").min().alias("first"),
                pl.col("partition").max().alias("last"),
                pl.col("strange").any(),
            )
            .sort("path")
        )
        self._several = DeleteIndex(several, metadata)

    def of(self, files: FileGroup) -> pl.DataFrame:
        """For each file, how many `deletes` there are, how many `rows` those about it alone delete, and `doubt`.

        All are upper limits. Where there is doubt, the deletes may violate the specification.
        """
        found = self._of_each(files)
        return found.with_columns(pl.col("deletes") + self._of_several(files)) if self._several else found

    def _of_each(self, files: FileGroup) -> pl.DataFrame:
        """The counts of deletes that are about one data file."""
        if self._about.is_empty():
            return pl.DataFrame({"deletes": pl.zeros(files.frame.height, pl.UInt32, eager=True)}).with_columns(
                rows=pl.lit(0, pl.Int64), doubt=pl.lit(False)
            )
        paths, known = files.frame["file_path"].hash(), self._about["path"]
        places = known.search_sorted(paths).clip(0, len(known) - 1)  # a join would hash all of them for every batch
        is_about = known.gather(places) == paths
        key, number = files.partition_hashes, files.frame["sequence_number"]
        found = self._about[places].with_columns(is_about.alias("is_about"), key.alias("key"), number.alias("of"))
        # all deletes of the path are in the file's partition only if both the least and the greatest of their partition
        # hashes are the file's
        is_elsewhere = (pl.col("first") != pl.col("key")) | (pl.col("last") != pl.col("key"))
        # spec: a deletion vector is not older than its data file
        is_late = (pl.col("oldest_vector") < pl.col("of")).fill_null(False)
        doubt = pl.col("strange") | (pl.col("vectors") > 1) | is_elsewhere | is_late
        return found.select(
            pl.when("is_about").then("deletes").otherwise(0).alias("deletes"),
            pl.when("is_about").then("rows").otherwise(0).alias("rows"),
            (pl.col("is_about") & doubt).alias("doubt"),
        )

    def _of_several(self, files: FileGroup) -> pl.Series:
        """How many deletes apply to each file among those that are about others too."""
        rows = zip(files.partition_keys, files.frame["sequence_number"].to_list(), strict=True)
        return pl.Series([len(self._several.deletes_for("", key, number)) for key, number in rows], dtype=pl.UInt32)


class _Counted(NamedTuple):
    about: pl.DataFrame
    several: list[ManifestEntry]


def _counted(deletes: FileGroup, *, of_several: bool) -> _Counted:
    frame = deletes.frame
    by_position = (frame["content"] == int(FileContent.POSITION_DELETES)).fill_null(False)
    by_equality = (frame["content"] == int(FileContent.EQUALITY_DELETES)).fill_null(False)
    formats = frame["file_format"].str.to_uppercase()
    is_vector = by_position & (formats == _VECTORS)
    has_place = frame["content_offset"].is_not_null() & frame["content_size_in_bytes"].is_not_null()
    path = only_paths(frame)
    about = pl.DataFrame(
        {
            "path": path.hash(),
            "partition": deletes.partition_hashes,
            "number": frame["sequence_number"],
            "rows": frame["record_count"],
            "vectors": is_vector.cast(pl.UInt32),
            "strange": ~(by_position & (formats.is_in(ROW_FORMATS) | (is_vector & has_place)))
            | frame["key_metadata"].is_not_null(),
        },
        schema=_ABOUT,
    ).filter(path.is_not_null())
    if not of_several:
        return _Counted(about, [])
    # anything else, or what cannot be read, raises an error when deletes are matched
    others = frame.filter(formats.is_in(ROW_FORMATS) & (by_equality | (by_position & path.is_null())))
    return _Counted(about, entries_of(others, deletes.partition, deletes.spec_id, "delete manifests"))


def only_paths(frame: pl.DataFrame) -> pl.Series:
    """The path of the only data file that each delete file refers to; null if it may refer to several."""
    referenced = frame["referenced_data_file"]
    if not referenced.null_count():
        return referenced
    lower, upper = (values_of(frame[name], FILE_PATH_ID) for name in ("lower_bounds", "upper_bounds"))
    bound = pl.select(pl.when((lower == upper).fill_null(False)).then(lower).otherwise(None)).to_series()
    return referenced.fill_null(bound.cast(pl.String, strict=False))
