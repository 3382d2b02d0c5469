"""A lake whose rules know what was reviewed."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import bergline
from bergline.lake.lake import Lake
from support.fixtures.catalog_files import new_catalog_uri
from support.fixtures.reviewing_lake import TABLES, ReviewingGuard, guarded, push


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    """Two tables with a branch `work` that has one snapshot more."""
    uri = new_catalog_uri(tmp_path / "catalog.db") if request.param == "sqlite" else request.getfixturevalue("postgres")
    with bergline.connect(uri, warehouse=tmp_path, name=f"pulls-{tmp_path.name}", create=True) as opened:
        opened.create_namespace("db")
        for name in TABLES:
            opened.create_table(name, pa.schema([("id", pa.int64())])).append(pa.table({"id": [1]}))
        opened.branch("work", TABLES)
        for name in TABLES:
            push(opened, name, 2)
        yield opened


@pytest.fixture
def guard(lake: Lake) -> ReviewingGuard:
    """The guard of the lake's catalog."""
    return guarded(lake)
