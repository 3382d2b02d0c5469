"""What executors need for our tasks: our package, which is sent if they lack it, and others, which cannot be sent.

Executors elsewhere are asked once in a session, by a task that imports nothing of ours.
"""

import atexit
import functools
import importlib.metadata
import importlib.util
import json
import re
import socket
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.errors import UnsupportedError
from bergline.io.locations import scheme_of
from bergline.io.open_store import OBJECT_STORE_SCHEMES
from bergline.spark.runtime.backend import SparkBackend

OURS = "bergline"
NEEDED = {"pyarrow": "21", "msgspec": "0.19", "mmh3": "4.1", "pyroaring": "1.0"}
"""The packages that tasks import, and from which version on."""
NEEDED_FOR_OBJECTS = NEEDED | {"obstore": "0.12"}
"""The same where files are on an object store."""
NEEDED_FOR_PLANNING = {"polars": "1.30"}
"""What tasks import beside these that look up the files of a scan."""

_LOOKED_FOR = (*NEEDED_FOR_OBJECTS, *NEEDED_FOR_PLANNING)
_PARTITION_ROWS = 1 << 33  # Spark's `monotonically_increasing_id` goes on with a multiple of it in each partition
_LOCK = threading.Lock()
_NO_PYTHON = re.compile(
    r"""(Cannot run program "[^"]*"[^\n]*)"""
    r"""|\[PYTHON_VERSION_MISMATCH\] ([^\n]*)"""
    r"""|Error from python worker:\s*([^\n]*)"""
)
"""What Spark says when a task's Python does not start, or is not the driver's version."""
_PYTHON_HINT = (
    "PYSPARK_PYTHON, or the setting `spark.pyspark.python`, is the path of the Python on the executors' machines, "
    "which must have the driver's minor version"
)


class Found(msgspec.Struct, frozen=True):
    """Where a task ran, and the versions of packages there: empty if not known, None if there is no such package."""

    host: str
    python: str
    versions: dict[str, str | None]


_FOUND: dict[tuple[str, str], list[Found]] = {}


def prepare_executors(backend: SparkBackend, location: str, *, for_planning: bool = False) -> int:
    """Let tasks run that use files at a location, or look up files of a scan; returns how many run at a time.

    UnsupportedError if executors lack a package for that.
    """
    key = backend.executors_key
    with _LOCK:
        if key not in _FOUND:
            found = [] if _have_this_package(backend) else _look(backend)
            if any(each.versions[OURS] != version() for each in found):
                _send(backend, package_archive())
            _FOUND[key] = found
    needed = NEEDED_FOR_OBJECTS if scheme_of(location) in OBJECT_STORE_SCHEMES else NEEDED
    check_packages(_FOUND[key], needed | NEEDED_FOR_PLANNING if for_planning else needed)
    slots = backend.task_slots
    return len(_FOUND[key]) if slots is None else slots


def check_packages(found: Sequence[Found], needed: Mapping[str, str]) -> None:
    """UnsupportedError if a package is missing somewhere, or too old."""
    for each in found:
        for package, least in needed.items():
            has = each.versions[package]
            if has is None or (has and _numbers(has) < _numbers(least)):
                raise UnsupportedError(
                    f"expected {package} {least} or newer on Spark's executors, found {has or 'none'} "
                    f"for {each.python} on {each.host}",
                    hints=[f'install "{package}>={least}" there, or let PYSPARK_PYTHON be a Python that has it'],
                )


@functools.cache
def version() -> str:
    """Our own version, looked up as on executors."""
    return msgspec.json.decode(_looking([OURS])(0), type=Found).versions[OURS] or ""


@functools.cache
def package_archive() -> Path:
    """A zip of our package for executors, kept until this process ends."""
    source = Path(__file__).parents[2]
    path = _directory() / f"{OURS}-{version()}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(source.rglob("*.py")):
            archive.write(file, f"{OURS}/{file.relative_to(source)}")
    return path


def _have_this_package(backend: SparkBackend) -> bool:
    """Whether tasks run here, in a Python that finds the same packages as this one; asking takes longer."""
    if not backend.has_local_executors:
        return False
    names = [OURS, *_LOOKED_FOR]
    program = "import sys; from importlib.util import find_spec; print(*(find_spec(n).origin for n in sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", program, *names], capture_output=True, text=True, check=False)  # noqa: S603
    origins = [str(spec.origin) if (spec := importlib.util.find_spec(name)) else "" for name in names]
    return done.returncode == 0 and done.stdout == f"{' '.join(origins)}\n"


def _look(backend: SparkBackend) -> list[Found]:
    """What one task for each core finds; this process looks for executors that it starts with its own Python."""
    looking = _looking([OURS, *_LOOKED_FOR])
    if backend.has_local_executors:
        return [msgspec.json.decode(looking(0), type=Found)]
    look = F.udf(looking, "string", useArrow=False)
    first_rows = backend.spark.range(1 << 16).where(F.monotonically_increasing_id() % _PARTITION_ROWS == 0)
    try:
        rows = first_rows.select(look("id").alias("found")).collect()
    except Exception as error:
        if (reason := no_python(str(error))) is None:
            raise
        raise UnsupportedError(
            f"expected a Python that runs tasks on Spark's executors, found none: {reason}", hints=[_PYTHON_HINT]
        ) from error
    return [msgspec.json.decode(row.found, type=Found) for row in rows]


def no_python(text: str) -> str | None:
    """Why executors can run no Python at all, by the text of an exception; None if it is about something else."""
    found = _NO_PYTHON.search(text)
    return None if found is None else " ".join(next(filter(None, found.groups())).split())


def _looking(packages: list[str]) -> Callable[[int], str]:
    """A function for where our package may be missing: it is sent as code, because it is inside another."""

    def version_of(name: str) -> str | None:
        spec = importlib.util.find_spec(name)
        if spec is None:
            return None
        if name == OURS:  # which may have come without a description
            source = getattr(spec.loader, "get_source", lambda _: "")(name)
            return "".join(re.findall(r'^__version__ = "(.*)"', source or "", re.MULTILINE))
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return ""

    def look() -> str:
        versions = {name: version_of(name) for name in packages}
        return json.dumps({"host": socket.gethostname(), "python": sys.executable, "versions": versions})

    return lambda _: look()  # without type hints, which Spark would take for those of another kind of function


def _send(backend: SparkBackend, archive: Path) -> None:
    backend.spark.addArtifacts(str(archive), pyfile=True)
    # Spark puts it before the package that this process has
    sys.path[:] = [entry for entry in sys.path if Path(entry).name != archive.name]


@functools.cache
def _directory() -> Path:
    directory = tempfile.TemporaryDirectory(prefix=f"{OURS}-")
    atexit.register(directory.cleanup)
    return Path(directory.name)


def _numbers(version_text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version_text)[:3])
