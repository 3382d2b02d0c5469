"""Object stores without their client."""

import sys

import pytest

from bergline.errors import UnsupportedError
from bergline.io.schemes import SchemeFileIO


@pytest.mark.parametrize(
    ("location", "extra"),
    [("s3a://bucket/x", "s3"), ("gs://bucket/x", "gcs"), ("abfss://container@account.dfs.core.windows.net/x", "azure")],
)
def test_missing_client_is_an_error_that_names_what_to_install(
    location: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(UnsupportedError, match="expected the package obstore for") as caught:
        SchemeFileIO().read(location)
    assert caught.value.hints == (f"install bergline[{extra}]",)
