"""One S3 server for all tests here, a bucket for each."""

import uuid
from collections.abc import Iterator

import pytest
from s3_server import S3Server, s3_server_program


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A running server."""
    with S3Server(s3_server_program(), tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def bucket(s3_server: S3Server) -> str:
    """The location of a new bucket."""
    return s3_server.make_bucket(f"test-{uuid.uuid4().hex[:12]}")
