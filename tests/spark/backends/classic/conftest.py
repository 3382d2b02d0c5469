"""A table in which every row is in a file of its own."""

import pytest

from bergline import Lake, Table
from support.fixtures.event_files import create_events


@pytest.fixture
def events(lake: Lake) -> Table:
    """Ten files of one row."""
    return create_events(lake)
