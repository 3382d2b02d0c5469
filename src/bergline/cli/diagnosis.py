"""The checks of `bergline doctor`, one function each: what there is, what is wrong, and how to fix it.

A failed check is a result like any other: the next one runs.
"""

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

from bergline import __version__
from bergline.arguments import counted
from bergline.cli.opening import LakeOptions, open_lake
from bergline.cli.settings import ENVIRONMENT, ConnectArguments, find_settings_file
from bergline.errors import AuthenticationError, BerglineError, NotFoundError
from bergline.extras import install_hint
from bergline.io.locations import join, local_path, scheme_of
from bergline.lake.lake import DEFAULT_CATALOG, Lake
from bergline.lake.opening import TOKEN_VARIABLE, is_server
from bergline.reports.units import render_size
from bergline.table.orphans.catalog_tables import every_table

_LEAST_PYTHON = (3, 11)
_LEAST_JAVA = 17
_LITTLE_SPACE = 1024**3
_SECONDS = 20
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)(?:\[[^]]*\])?(?P<versions>[^;]*)(?:;(?P<marker>.*))?")
_LEAST = re.compile(r">=\s*([0-9.]+)")
_BELOW = re.compile(r"<\s*([0-9.]+)")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_SHOWN_EXTRAS = ("", "cli", "spark", "server", "rest", "postgres", "s3", "gcs", "azure", "glue")
_SECRET = re.compile(r"(?<=:)[^/:@]+(?=@)")
_CREDENTIALS = {
    "s3": ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
    "gs": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"),
    "abfss": ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_CLIENT_ID", "AZURE_STORAGE_SAS_TOKEN"),
}
_CREDENTIAL_PROPERTIES = ("s3.access-key-id", "gcs.", "adls.", "client.")


class Health(StrEnum):
    """The result of a check."""

    OK = "ok"
    NOTE = "note"
    """Something is missing that not everybody needs."""
    WARNING = "warning"
    ERROR = "error"


class Diagnosis(msgspec.Struct, frozen=True):
    """One thing that was checked; `mend` says what to do about it."""

    health: Health
    subject: str
    message: str
    mend: str = ""


def diagnose(options: LakeOptions) -> Iterator[Diagnosis]:
    """Run all checks, one after the other."""
    yield from _guarded("Python", _python)
    yield from _guarded("packages", _packages)
    yield from _guarded("Java", _java)
    yield from _guarded("Spark", _spark)
    settings: list[ConnectArguments] = []
    yield from _guarded("settings", lambda: _settings(options, settings))
    if settings:
        yield from _guarded("catalog", lambda: _lake(settings[0]))


def _guarded(subject: str, look: Callable[[], Iterator[Diagnosis]]) -> Iterator[Diagnosis]:
    try:
        yield from look()
    except BerglineError as error:
        yield Diagnosis(Health.ERROR, subject, str(error), "; ".join(error.hints))
    except Exception as error:  # noqa: BLE001  (whatever is broken: the other checks still run)
        yield Diagnosis(Health.ERROR, subject, f"{type(error).__name__}: {error}", "report this as a bug of bergline")


def _python() -> Iterator[Diagnosis]:
    text = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < _LEAST_PYTHON:
        yield Diagnosis(Health.ERROR, "Python", text, "install Python 3.11 or later")
    else:
        yield Diagnosis(Health.OK, "Python", text)
    place = Path(__file__).parents[1]
    yield Diagnosis(Health.OK, "bergline", f"{__version__} at {place}")


def _packages() -> Iterator[Diagnosis]:
    """The packages that bergline requires, and those of its extras."""
    extras: dict[str, list[str]] = {}
    try:
        requirements = importlib.metadata.requires("bergline") or ()
    except importlib.metadata.PackageNotFoundError:
        message = "bergline runs from a directory, and is not installed"
        yield Diagnosis(
            Health.NOTE, "packages", message, "install it, as the documentation says: that brings what it needs"
        )
        return
    for text in requirements:
        required, of_extra = _REQUIREMENT.match(text), _EXTRA.search(text)
        extra = of_extra[1] if of_extra else ""
        if required is None or required["name"] == "bergline" or extra not in _SHOWN_EXTRAS:
            continue
        problems = extras.setdefault(extra, [])
        if problem := _problem(required["name"], required["versions"]):
            problems.append(problem)
    for problem in extras.pop("", []):
        yield Diagnosis(Health.ERROR, "packages", problem, "install bergline again, which brings what it needs")
    for extra, problems in extras.items():
        if problems:
            message = f"extra `{extra}` is not complete: {', '.join(problems)}"
            yield Diagnosis(Health.NOTE, "packages", message, f"{install_hint(extra)}, if you need it")
        else:
            yield Diagnosis(Health.OK, "packages", f"extra `{extra}` is installed")


def _problem(name: str, versions: str) -> str:
    """What is wrong with a package; empty if nothing is."""
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return f"{name} is missing"
    least, below = _LEAST.search(versions), _BELOW.search(versions)
    if least and _numbers(found) < _numbers(least[1]):
        return f"{name} {found} is older than {least[1]}"
    if below and _numbers(found) >= _numbers(below[1]):
        return f"{name} {found} is not below {below[1]}"
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])


def _java() -> Iterator[Diagnosis]:
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    is_needed = not _problem("pyspark", "")
    health = Health.ERROR if is_needed else Health.NOTE
    install = f"install Java {_LEAST_JAVA} or later, which Spark needs"
    if program is None:
        yield Diagnosis(health, "Java", "not found on the PATH, and JAVA_HOME is not set", install)
        return
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        mend = f"set JAVA_HOME to a Java {_LEAST_JAVA} or later, or unset it" if home else install
        yield Diagnosis(health, "Java", f"cannot run {program}: {error}", mend)
        return
    match = _JAVA_VERSION.search(done.stderr + done.stdout)
    if match is None:
        yield Diagnosis(health, "Java", f"{program} does not tell its version", install)
    elif int(match[1]) < _LEAST_JAVA:
        yield Diagnosis(health, "Java", f"version {match[1]} at {program}", f"{install}, and set JAVA_HOME to it")
    else:
        yield Diagnosis(Health.OK, "Java", f"version {match[1]} at {program}")


def _spark() -> Iterator[Diagnosis]:
    if problem := _problem("pyspark", ">=4.0"):
        mend = f"{install_hint('spark')}; without it `bergline sql` runs on DuckDB or polars"
        yield Diagnosis(Health.NOTE, "Spark", problem, mend)
        return
    yield Diagnosis(Health.OK, "Spark", f"PySpark {importlib.metadata.version('pyspark')}")
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        other = os.environ.get(variable)
        if other and shutil.which(other) is None:
            message = f"{variable} is `{other}`, which does not exist"
            yield Diagnosis(Health.ERROR, "Spark", message, f"unset {variable}, or name a Python that exists")
    home = os.environ.get("SPARK_HOME")
    if home and not (Path(home) / "bin" / "spark-submit").exists():
        message = f"SPARK_HOME is `{home}`, where there is no Spark"
        yield Diagnosis(Health.ERROR, "Spark", message, "unset SPARK_HOME: PySpark brings its own")


def _settings(options: LakeOptions, found: list[ConnectArguments]) -> Iterator[Diagnosis]:
    for variable in ENVIRONMENT.values():
        if os.environ.get(variable):
            yield Diagnosis(Health.OK, "settings", f"{variable} is {_shown(os.environ[variable])}")
    file = find_settings_file(Path.cwd())
    try:
        found.append(options.settings())
    except BerglineError as error:
        mend = "; ".join(error.hints) or "correct the file, or name the lake with --catalog"
        yield Diagnosis(Health.ERROR, "settings", str(error), mend)
        return
    yield Diagnosis(Health.OK, "settings", f"file {file}" if file else "no bergline.toml here or above")


def _lake(settings: ConnectArguments) -> Iterator[Diagnosis]:
    uri = settings.catalog or DEFAULT_CATALOG
    try:
        lake = open_lake(settings)
    except NotFoundError as error:
        is_default = settings.catalog is None
        mend = "; ".join(error.hints)
        health = Health.NOTE if is_default else Health.ERROR
        yield Diagnosis(
            health, "catalog", str(error), f"`bergline quickstart` makes one; {mend}" if is_default else mend
        )
        return
    with lake:
        try:
            tables = sum(1 for _ in every_table(lake.catalog))
        except AuthenticationError as error:
            mend = "; ".join(error.hints) or f"set {TOKEN_VARIABLE} to a token of `bergline token create`"
            yield Diagnosis(Health.ERROR, "credentials", str(error), mend)
            return
        yield Diagnosis(Health.OK, "catalog", f"{_shown(uri)}, with {counted(tables, 'table')}")
        if is_server(uri):
            given = "a token is set" if os.environ.get(TOKEN_VARIABLE) or settings.properties else "none given"
            yield Diagnosis(Health.OK, "credentials", f"accepted by the server; {given}")
            yield Diagnosis(Health.NOTE, "warehouse", "the server chooses where tables are")
            return
        yield from _warehouse(lake, settings)


def _warehouse(lake: Lake, settings: ConnectArguments) -> Iterator[Diagnosis]:
    """Whether a file can be written, read and deleted where new tables go."""
    warehouse = getattr(lake.catalog, "warehouse", None)
    if warehouse is None:
        message = "none is known: new tables need a location"
        yield Diagnosis(Health.NOTE, "warehouse", message, "name one with --warehouse or in bergline.toml")
        return
    scheme = scheme_of(warehouse)
    names = _CREDENTIALS.get({"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss"}.get(scheme, scheme), ())
    given = [name for name in names if os.environ.get(name)]
    given += [key for key in settings.properties if key.startswith(_CREDENTIAL_PROPERTIES)]
    if names and not given:
        message = f"none given for {warehouse}: only those of the machine are left"
        yield Diagnosis(Health.WARNING, "credentials", message, f"set {names[0]} and what belongs to it")
    elif names:
        yield Diagnosis(Health.OK, "credentials", f"given by {', '.join(given)}")
    if scheme == "file" and not Path(local_path(warehouse)).exists():
        yield _missing_directory(Path(local_path(warehouse)))
        return
    probe, io = join(warehouse, f".bergline-doctor-{uuid.uuid4()}"), lake.catalog.io
    try:
        io.create(probe, b"bergline")
        is_same = io.read(probe) == b"bergline"
        left = io.delete([probe])
    except BerglineError as error:
        mend = "; ".join(error.hints) or "give this user the right to write there, or choose another warehouse"
        yield Diagnosis(Health.ERROR, "warehouse", f"cannot write to {warehouse}: {error}", mend)
        return
    if left or not is_same:
        message = f"a file in {warehouse} could not be read and deleted again"
        yield Diagnosis(Health.ERROR, "warehouse", message, f"delete {probe} by hand, and look at the store's rights")
        return
    if scheme == "file":
        free = shutil.disk_usage(local_path(warehouse)).free
        if free < _LITTLE_SPACE:
            message = f"{warehouse} is writable, but only {render_size(free)} are free"
            yield Diagnosis(Health.WARNING, "warehouse", message, "free some space: expire snapshots, delete orphans")
            return
    yield Diagnosis(Health.OK, "warehouse", f"{warehouse} is writable")


def _missing_directory(directory: Path) -> Diagnosis:
    """A warehouse that the first table will create."""
    above = next(place for place in directory.parents if place.exists())
    if os.access(above, os.W_OK):
        return Diagnosis(Health.OK, "warehouse", f"{directory} does not exist yet: the first table makes it")
    message = f"{directory} does not exist, and cannot be made in {above}"
    return Diagnosis(Health.ERROR, "warehouse", message, "make it writable for this user, or choose another warehouse")


def _shown(uri: str) -> str:
    """A catalog without its password."""
    return _SECRET.sub("***", uri)
