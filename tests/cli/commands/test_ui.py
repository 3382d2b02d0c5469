"""`bergline ui` as a program."""

import http.client
import re
import signal
import subprocess
import sys
from pathlib import Path

import bergline


def test_lake_is_shown_on_loopback_until_it_is_interrupted(tmp_path: Path) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    with bergline.connect(catalog, create=True) as lake:
        lake.create_namespace("db")
    program = [sys.executable, "-c", "from bergline.cli.entry import main; main()", "ui", "--no-browser", "--port", "0"]
    with subprocess.Popen([*program, "--catalog", catalog], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        said = process.stderr.readline()
        address = r"http://127\.0\.0\.1:(\d+)/\?token=(\S{43})"
        found = re.fullmatch(rf"showing `lake` at {address} to who has this address; Ctrl-C ends it\n", said)
        assert found, said
        statuses = []
        for host, secret in (("localhost", found[2]), ("localhost", "other"), ("evil.example", found[2])):
            connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
            connection.request("GET", "/audit", headers={"host": host, "authorization": f"Bearer {secret}"})
            statuses.append(connection.getresponse().status)
            connection.close()
        assert statuses == [200, 403, 403]
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert (process.returncode, rest) == (0, "")


def test_lake_that_is_not_there_is_not_created(tmp_path: Path) -> None:
    program = [sys.executable, "-c", "from bergline.cli.entry import main; main()", "ui", "--no-browser"]
    ended = subprocess.run(
        [*program, "--catalog", f"sqlite:///{tmp_path}/no.db"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: no catalog")
    assert list(tmp_path.iterdir()) == []
