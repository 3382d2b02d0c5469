"""`python -m bergline.spark job.py`: run a script whose Spark sessions have lakes, as Python would run it."""

import builtins
import importlib.util
import os
import shlex
import sys
import zipfile
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, NoReturn

import msgspec

from bergline.errors import BerglineError, InvalidInputError, near_names
from bergline.spark.session.builder_hook import attach_every_session
from bergline.spark.session.configured_lakes import PREFIX, settings_by_lake

_USAGE = """\
usage: python -m bergline.spark [option]... job.py [argument]...
       python -m bergline.spark [option]... -m module [argument]...

Runs a script or module as Python does; every Spark session that it builds has lakes.

  --lake NAME=URI     a lake, as bergline.connect takes its URI; may be repeated
  --conf KEY=VALUE    a setting of Spark, or of a lake: spark.bergline.NAME.warehouse; may be repeated
  --master URL, --packages NAMES, --driver-memory SIZE and others of spark-submit are given to Spark
"""
_SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_PRIMARY = "pyspark-shell"
_SPARK_OPTIONS = (
    *("--master", "--name", "--properties-file", "--jars", "--packages", "--exclude-packages", "--repositories"),
    *("--py-files", "--files", "--archives", "--driver-memory", "--driver-java-options", "--driver-library-path"),
    *("--driver-class-path", "--driver-cores", "--executor-memory", "--executor-cores", "--total-executor-cores"),
    *("--num-executors", "--queue", "--principal", "--keytab", "--proxy-user"),
)
_OWN_OPTIONS = ("--lake", "--conf", "-c")


class Job(msgspec.Struct):
    """What to run, with which settings of lakes and which options of Spark."""

    target: str = ""
    is_module: bool = False
    arguments: list[str] = []
    lakes: dict[str, str] = {}
    spark_options: list[str] = []


def parse_job(arguments: Sequence[str]) -> Job:
    """What a command line asks for; everything after the script is the script's."""
    job, rest = Job(), list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-m":
        option, equals, value = rest.pop(0).partition("=")
        if option not in {*_OWN_OPTIONS, *_SPARK_OPTIONS}:
            near = near_names(option, (*_OWN_OPTIONS, *_SPARK_OPTIONS))
            hints = [f"did you mean {', '.join(f'`{n}`' for n in near)}?"] if near else []
            raise InvalidInputError(f"expected an option of this command, found `{option}`", hints=hints)
        if not equals:
            if not rest:
                raise InvalidInputError(f"expected a value after `{option}`, found none")
            value = rest.pop(0)
        _take_option(job, option, value)
    if rest[:1] == ["-m"]:
        job.is_module = True
        del rest[0]
    if not rest:
        raise InvalidInputError(f"expected a {'module' if job.is_module else 'script'} to run, found none")
    job.target, *job.arguments = rest
    settings_by_lake({key.removeprefix(PREFIX): value for key, value in job.lakes.items()})
    return job


def run(job: Job) -> None:
    """Run a script or module as `__main__`."""
    attach_every_session(job.lakes)
    if job.spark_options:
        theirs = os.environ.get(_SUBMIT_ARGUMENTS, _PRIMARY)
        os.environ[_SUBMIT_ARGUMENTS] = f"{shlex.join(job.spark_options)} {theirs}"
    main, code = _module_main(job.target) if job.is_module else _script_main(job.target)
    sys.argv = [str(main.__file__) if job.is_module else job.target, *job.arguments]
    sys.modules["__main__"] = main
    _execute(code, main)


def main(arguments: Sequence[str]) -> None:
    """Run what a command line asks for; exit code 2 if it is wrong."""
    if arguments and arguments[0] in {"-h", "--help"}:
        sys.stdout.write(_USAGE)
        return
    try:
        job = parse_job(arguments)
    except BerglineError as error:
        _fail("\n".join([str(error), *(f"hint: {hint}" for hint in error.hints)]))
    run(job)


def _take_option(job: Job, option: str, value: str) -> None:
    if option in _SPARK_OPTIONS:
        job.spark_options += [option, value]
        return
    key, equals, setting = value.partition("=")
    if not (key and equals):
        what = "NAME=URI" if option == "--lake" else "KEY=VALUE"
        raise InvalidInputError(f"expected `{option} {what}`, found another text")  # which may be a secret
    if option == "--lake":
        key = f"{PREFIX}{key}.uri"
    if not key.startswith(PREFIX):
        job.spark_options += ["--conf", value]
    elif job.lakes.setdefault(key, setting) != setting:
        raise InvalidInputError(f"expected one value for `{key}`, found several")


def _script_main(path: str) -> tuple[ModuleType, CodeType]:
    """A script; or the `__main__.py` of a directory or archive, as Python takes them."""
    if os.path.isdir(path) or zipfile.is_zipfile(path):  # noqa: PTH112
        _put_first(os.path.abspath(path))  # noqa: PTH100
        spec = PathFinder.find_spec("__main__", [path])
        if spec is None:
            _fail(f"cannot find `__main__.py` in `{path}`")
        return _main_of(spec)
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            source = file.read()
    except OSError as error:
        _fail(f"cannot open the script `{path}`: {error.strerror}")
    _put_first(os.path.dirname(os.path.realpath(path)))  # noqa: PTH120
    whole = os.path.abspath(path)  # noqa: PTH100
    found = _new_main(whole, SourceFileLoader("__main__", whole))
    return found, _compiled(source, whole)


def _module_main(name: str) -> tuple[ModuleType, CodeType]:
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise
        spec = None
    if spec is None or spec.loader is None:
        _fail(f"no module `{name}` that can be run")
    return _main_of(spec)


def _main_of(spec: ModuleSpec) -> tuple[ModuleType, CodeType]:
    loader: Any = spec.loader
    found = _new_main(spec.origin, loader)
    found.__spec__, found.__package__ = spec, spec.parent
    return found, loader.get_code(spec.name)


def _new_main(file: str | None, loader: Any) -> ModuleType:
    found = ModuleType("__main__")
    found.__file__, found.__loader__ = file, loader
    vars(found).update(__builtins__=builtins, __cached__=None, __annotations__={})
    return found


def _put_first(directory: str) -> None:
    """Where the script's own modules are, in place of the directory in which we were started."""
    if not sys.flags.safe_path:
        sys.path[0] = directory


def _compiled(source: bytes, path: str) -> CodeType:
    try:
        return compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        sys.excepthook(type(error), error.with_traceback(None), None)
        sys.exit(1)


def _execute(code: CodeType, main: ModuleType) -> None:
    """Run code; an error that nobody catches is shown without our own frames."""
    try:
        exec(code, vars(main))  # noqa: S102  (the user's script)
    except Exception as error:  # noqa: BLE001  (every one, as Python does)
        trace = error.__traceback__
        below = None if trace is None else trace.tb_next
        sys.excepthook(type(error), error.with_traceback(below), below)
        sys.exit(1)


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"bergline.spark: {message}\n")
    sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
