"""What catalogs keep beside their tables."""

from collections.abc import Callable
from pathlib import Path

import pytest

import bergline
from bergline import Lake
from bergline.errors import UnsupportedError
from bergline.governance.governance import governance_of
from support.fixtures.catalog_files import new_catalog_uri

ASKED: dict[str, Callable[[Lake], object]] = {
    "access": lambda lake: lake.access,
    "rules": lambda lake: lake.rules,
    "lake_branches": lambda lake: lake.branches,
    "reviews": lambda lake: lake.reviews,
    "events": lambda lake: list(lake.events()),
    "pull_requests": lambda lake: lake.pull_requests,
}


def kept(lake: Lake, name: str) -> object:
    governance = governance_of(lake.catalog)
    return governance.pull_requests(lambda: None, lambda: 0) if name == "pull_requests" else getattr(governance, name)


@pytest.mark.parametrize("name", ASKED)
def test_catalog_without_a_database_keeps_nothing_and_the_lake_says_so(name: str) -> None:
    with bergline.connect("memory:") as lake:
        assert kept(lake, name) is None
        with pytest.raises(UnsupportedError, match=r"found another|has no event log"):
            ASKED[name](lake)


@pytest.mark.parametrize("name", ASKED)
def test_database_keeps_it(name: str, tmp_path: Path) -> None:
    with bergline.connect(new_catalog_uri(tmp_path / "catalog.db"), warehouse=tmp_path, create=True) as lake:
        assert kept(lake, name) is not None
        assert ASKED[name](lake) is not None
        assert governance_of(lake.catalog).webhooks is None
