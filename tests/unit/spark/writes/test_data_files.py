"""What is removed of attempts whose results Spark did not take."""

from pathlib import Path
from typing import Any, cast

import pytest

from bergline.io.local import LocalFileIO
from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.writes import data_files
from bergline.spark.writes.data_files import remove_other_attempts
from bergline.spark.writes.task import TaskAttempt


class Stages:
    """Says of every stage the same."""

    def __init__(self, answer: bool | None) -> None:
        self._answer = answer

    def ran_once(self, _: int) -> bool | None:
        return self._answer


@pytest.mark.parametrize(
    ("ran_once", "is_first", "most", "left"),
    [
        (True, True, 10, {"won", "lost", "of another job"}),
        (True, False, 10, {"won", "of another job"}),
        (False, True, 1, {"won", "of another job"}),
        (None, True, 10, {"won", "of another job"}),  # over Spark Connect
        (None, True, 0, {"won", "lost", "of another job"}),
        (None, False, 0, {"won", "of another job"}),
    ],
)
def test_files_of_other_attempts_go_unless_there_were_certainly_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    ran_once: bool | None,
    is_first: bool,
    most: int,
    left: set[str],
) -> None:
    monkeypatch.setattr(data_files, "_LISTED_IN_DOUBT", most)
    names = {"00000-7-job-a-1": "won", "00000-5-job-a-1": "lost", "00000-5-job-b-1": "of another job"}
    for name in names:
        (tmp_path / name).touch()
    attempts = [TaskAttempt("00000-7", 3, is_first)]
    backend = cast("SparkBackend", cast("Any", Stages(ran_once)))
    kept = f"file://{tmp_path}/00000-7-job-a-1"
    remove_other_attempts(backend, LocalFileIO(), f"file://{tmp_path}", "job-a", attempts, keep=[kept])
    assert {names[path.name] for path in tmp_path.iterdir()} == left
