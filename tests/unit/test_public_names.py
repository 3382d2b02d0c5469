"""Names that users import: at the top of the package, and under the paths that were documented before."""

import bergline
import bergline.format.manifest
import bergline.format.metadata


def test_every_exported_name_is_found() -> None:
    assert {name for name in bergline.__all__ if not hasattr(bergline, name)} == set()


def test_data_file_is_the_same_class_under_its_former_path() -> None:
    assert bergline.format.manifest.DataFile is bergline.DataFile


def test_statistics_files_are_the_same_classes_under_their_former_path() -> None:
    assert bergline.format.metadata.StatisticsFile is bergline.StatisticsFile
    assert bergline.format.metadata.PartitionStatisticsFile is bergline.PartitionStatisticsFile
