"""Object stores without their client."""

import subprocess
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
    assert caught.value.hints == (f"pip install 'obstore>=0.12', the extra `{extra}` of bergline",)


FORK = """
import os, signal
from bergline.errors import UnsupportedError
from bergline.io.object_store import ObjectStoreFileIO
properties = {"s3.endpoint": "http://127.0.0.1:1", "s3.anonymous": "true", "s3.connect-timeout": "1"}
ObjectStoreFileIO(properties).create_output("s3://bucket/x")
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        ObjectStoreFileIO(properties).exists("s3://bucket/x")
    except UnsupportedError:
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


def test_forked_process_is_refused_instead_of_hanging() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
