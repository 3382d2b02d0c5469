"""What is known of a session on a server without asking the server."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.connect import functions as F  # noqa: N812
from pyspark.sql.types import LongType

from bergline.errors import UnsupportedError
from bergline.spark.backends.connect.backend import ConnectBackend
from bergline.spark.runtime.backend import NO_SESSION

BACKEND = ConnectBackend(SimpleNamespace(session_id="one", client=None))


def test_casts_fail_where_a_value_does_not_fit() -> None:
    cast: Any = BACKEND.ansi_cast(F.col("a"), LongType())  # type: ignore[arg-type]
    assert cast.to_plan(None).cast.eval_mode == 2  # EVAL_MODE_ANSI


def test_what_only_the_server_knows_is_not_guessed() -> None:
    frame: Any = None
    assert BACKEND.task_slots is None
    assert not BACKEND.has_local_executors
    assert BACKEND.count_files(frame) is None
    assert not BACKEND.is_at_hand(frame, 10)
    assert BACKEND.s3a_refusal() == NO_SESSION
    with pytest.raises(UnsupportedError, match=r"longer than spark\.sql\.maxPlanStringLength"):
        BACKEND.named_subqueries(frame)
