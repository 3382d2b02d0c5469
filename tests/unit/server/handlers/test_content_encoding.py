"""What clients say in Accept-Encoding."""

import pytest

from bergline.server.handlers.content_encoding import accepts_gzip


@pytest.mark.parametrize(
    "header",
    [
        "gzip",
        "gzip, deflate",  # PyIceberg
        "gzip, x-gzip, deflate",  # Java
        "GZIP;q=0.5",
        "x-gzip",
        "*",
        "br;q=1.0, *;q=0.1",
        "gzip ; q=1",
        "identity, gzip",
        "gzip;q=0.5, identity;q=0.5",
    ],
)
def test_gzip_is_taken(header: str) -> None:
    assert accepts_gzip(header)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "identity",
        "deflate, br",
        "gzip;q=0",
        "gzip;q=0.000",
        "*;q=0",
        "gzip;q=0, *",
        "identity, gzip;q=0.5",
        "gzip;q=often",
        "gzip;q=-1",
        "gzip;q=nan",
        "gzip;q=2",
        ",;,=;q",
    ],
)
def test_gzip_is_not_taken(header: str | None) -> None:
    assert not accepts_gzip(header)
