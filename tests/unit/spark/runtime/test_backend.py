"""Both backends have all that the protocol asks for."""

import inspect
from types import SimpleNamespace

import pytest

from bergline.errors import InvalidInputError
from bergline.spark.backends.classic.backend import ClassicBackend
from bergline.spark.backends.connect.backend import ConnectBackend
from bergline.spark.runtime.backend import SparkBackend, check_running

MEMBERS = [name for name in vars(SparkBackend) if not name.startswith("_")]


@pytest.mark.parametrize("backend", [ClassicBackend, ConnectBackend])
def test_backend_has_the_methods_of_the_protocol_and_no_others(backend: type) -> None:
    assert {name for name in vars(backend) if not name.startswith("_")} == set(MEMBERS)
    for name in MEMBERS:
        asked, given = getattr(SparkBackend, name), getattr(backend, name)
        if inspect.isfunction(asked):
            assert list(inspect.signature(given).parameters) == list(inspect.signature(asked).parameters), name


def test_session_that_was_stopped_is_refused() -> None:
    running, stopped = (ConnectBackend(SimpleNamespace(is_stopped=it_is)) for it_is in (False, True))
    check_running(running)
    with pytest.raises(InvalidInputError, match="expected a running Spark session, found one that was stopped"):
        check_running(stopped)
