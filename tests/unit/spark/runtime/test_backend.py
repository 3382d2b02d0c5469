"""Both backends have all that the protocol asks for."""

import inspect
from types import SimpleNamespace

import pytest

from bergline.errors import InvalidInputError
from bergline.spark.backends.classic.backend import ClassicBackend
from bergline.spark.backends.classic.sql import ClassicSql
from bergline.spark.backends.connect.backend import ConnectBackend
from bergline.spark.backends.connect.sql import ConnectSql
from bergline.spark.runtime.backend import SparkBackend, check_running
from bergline.spark.runtime.sql_backend import SqlBackend

PAIRS = (
    (SparkBackend, ClassicBackend),
    (SparkBackend, ConnectBackend),
    (SqlBackend, ClassicSql),
    (SqlBackend, ConnectSql),
)


@pytest.mark.parametrize(("protocol", "backend"), PAIRS)
def test_backend_has_the_methods_of_the_protocol_and_no_others(protocol: type, backend: type) -> None:
    members = [name for name in vars(protocol) if not name.startswith("_")]
    given_members = {name for name in vars(backend) if not name.startswith("_")}
    assert given_members | {"spark"} == {*members, "spark"}
    for name in members:
        asked, given = getattr(protocol, name), getattr(backend, name)
        if inspect.isfunction(asked):
            assert list(inspect.signature(given).parameters) == list(inspect.signature(asked).parameters), name


def test_session_that_was_stopped_is_refused() -> None:
    running, stopped = (ConnectBackend(SimpleNamespace(is_stopped=it_is)) for it_is in (False, True))
    check_running(running)
    with pytest.raises(InvalidInputError, match="expected a running Spark session, found one that was stopped"):
        check_running(stopped)
