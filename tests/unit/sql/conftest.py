"""A session that runs statements without an engine."""

import pytest
from sql_statements import Session

from bergline import Lake


@pytest.fixture
def run(lake: Lake) -> Session:
    return Session(lake)
