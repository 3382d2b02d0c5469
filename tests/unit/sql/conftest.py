"""A session that runs statements without an engine."""

import pytest

from bergline import Lake
from support.fixtures.sql_statements import Session


@pytest.fixture
def run(lake: Lake) -> Session:
    return Session(lake)
