"""Files on a real S3 server."""

import pytest

from bergline.io.fileio import FileIO
from bergline.io.object_store import ObjectStoreFileIO
from bergline.testing.file_io_suite import FileIOSuite
from support.servers.s3_server import S3Server


class TestS3FileIO(FileIOSuite):
    large = 40 * 1024 * 1024 + 17

    @pytest.fixture(autouse=True)
    def _place(self, s3_server: S3Server, bucket: str) -> None:
        self._io = ObjectStoreFileIO(s3_server.properties)
        self._directory = f"{bucket}/ware house"

    def make_io(self) -> FileIO:
        return self._io

    def make_directory(self) -> str:
        return self._directory
