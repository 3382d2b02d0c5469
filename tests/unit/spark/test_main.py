"""`python -m bergline.spark`: options, and scripts that run as Python runs them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bergline.errors import InvalidInputError
from bergline.spark.__main__ import Job, parse_job

pytestmark = pytest.mark.long

SCRIPT = """\
import __main__, pickle, sys
import beside
class Own: pass
assert isinstance(pickle.loads(pickle.dumps(Own())), __main__.Own)
print(sys.argv, __name__, __file__, __spec__ and __spec__.name, __package__, sys.path[0], beside.VALUE)
def fail():
    raise ValueError("no such day")
if "fail" in sys.argv:
    fail()
sys.exit(int(sys.argv[1]))
"""


def run(*arguments: str, cwd: Path, ours: bool = True) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *(["-m", "bergline.spark"] if ours else []), *arguments]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    for directory in (tmp_path / "jobs", tmp_path / "package"):
        directory.mkdir()
        (directory / "beside.py").write_text("VALUE = 5\n")
    (tmp_path / "jobs" / "job.py").write_text(SCRIPT)
    (tmp_path / "jobs" / "broken.py").write_text("x = (\n")
    (tmp_path / "beside.py").write_text("VALUE = 6\n")
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__main__.py").write_text(SCRIPT)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("jobs/job.py", "3", "--conf", "-m"),
        ("jobs/job.py", "fail"),
        ("package", "4"),
        ("-m", "package", "5"),
        ("jobs/broken.py",),
    ],
    ids=" ".join,
)
def test_scripts_run_as_python_runs_them(scripts: Path, arguments: tuple[str, ...]) -> None:
    done, plain = run(*arguments, cwd=scripts), run(*arguments, cwd=scripts, ours=False)
    assert (done.returncode, done.stdout, done.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def test_wrong_command_is_one_error(scripts: Path) -> None:
    done = run("--lakee", "a=sqlite:///a.db", "jobs/job.py", cwd=scripts)
    expected = "bergline.spark: expected an option of this command, found `--lakee`\nhint: did you mean `--lake`?\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


def test_options_before_the_script_are_settings() -> None:
    job = parse_job(
        [
            "--lake", "a=sqlite:///a.db?x=1", "--conf", "spark.bergline.a.create=true", "--conf=spark.executor.cores=2",
            "--master", "local[2]", "-m", "package.job", "--conf", "theirs",
        ]
    )  # fmt: skip
    assert job == Job(
        "package.job",
        is_module=True,
        arguments=["--conf", "theirs"],
        lakes={"spark.bergline.a.uri": "sqlite:///a.db?x=1", "spark.bergline.a.create": "true"},
        spark_options=["--conf", "spark.executor.cores=2", "--master", "local[2]"],
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected a script to run, found none"),
        (["-m"], "expected a module to run, found none"),
        (["--lake"], "expected a value after `--lake`, found none"),
        (["--lake", "secret", "job.py"], "expected `--lake NAME=URI`, found another text"),
        (["--conf", "spark.bergline.a.urii=x", "job.py"], "found `spark.bergline.a.urii`"),
        (["--lake", "a=x", "--lake", "a=y", "job.py"], "expected one value for `spark.bergline.a.uri`, found several"),
    ],
)
def test_bad_options_are_named(arguments: list[str], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_job(arguments)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)
