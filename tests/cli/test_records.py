"""The records of a server's database."""

from pathlib import Path

import pytest

from bergline.cli.opening import ANY_CATALOG, LakeOptions
from bergline.cli.records import open_records
from bergline.errors import NotFoundError, UnsupportedError


def test_records_are_those_of_the_named_catalog(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    with open_records(LakeOptions(catalog, catalog_name="sales"), create=ANY_CATALOG) as records:
        records.tokens.create("ann", "secret", 0, None)
        assert records.catalog_name == "sales"
    assert "creating it" in capsys.readouterr().err
    with open_records(LakeOptions(catalog, catalog_name="sales")) as records:
        assert [token.name for token in records.tokens.all()] == ["ann"]
    with pytest.raises(NotFoundError, match="no catalog `lake`"), open_records(LakeOptions(catalog)):
        pass


def test_address_of_a_server_is_refused() -> None:
    with (
        pytest.raises(UnsupportedError, match="expected the database that the server serves"),
        open_records(LakeOptions("HTTP://127.0.0.1:1")),
    ):
        pass
