"""The wheel, installed outside the checkout: all that a user's environment gets, and nothing of the source tree."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import bergline

ROOT = Path(__file__).parents[2]
STORY = """
import bergline, pyarrow as pa
with bergline.connect("sqlite:///lake.db", warehouse="wh", create=True) as lake:
    lake.create_namespace("db")
    table = lake.create_table("db.orders", pa.schema([("id", pa.int64())]))
    table.append([{"id": 1}])
    table.refs.create_branch("audit")
    table.append([{"id": 2}], branch="audit")
    lake.publish("audit")
    print(bergline.__file__)
    print(sorted(row["id"] for row in lake.load_table("db.orders").scan().to_arrow().to_pylist()))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as pip would build it, without a network."""
    place = tmp_path_factory.mktemp("wheel")
    pip_wheel = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*pip_wheel, "-w", str(place)], capture_output=True, text=True, check=False, cwd=place)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = place.glob("bergline-*.whl")
    return found


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with nothing but the wheel; the packages that it needs are those of this one, by a path file."""
    place = tmp_path_factory.mktemp("bare")
    venv.create(place, with_pip=False)
    (packages,) = place.glob("lib/python*/site-packages")
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--no-compile", "--quiet"]
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(place / "bin/python"), *install[3:], str(wheel)],
        check=True,
        capture_output=True,
        cwd=place,
    )
    # a line of a path file that is not `import …` adds a directory, but does not run the path files in it
    (packages / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return place


def run(bare: Path, cwd: Path, *arguments: str) -> str:
    environment = {"PATH": f"{bare}/bin:/usr/bin:/bin", "HOME": str(cwd)}
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=cwd, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_command_line_of_the_wheel_runs(bare: Path, tmp_path: Path) -> None:
    assert run(bare, tmp_path, f"{bare}/bin/bergline", "--version") == f"bergline {bergline.__version__}\n"
    assert "Usage" in run(bare, tmp_path, f"{bare}/bin/bergline", "--help")


def test_lake_with_a_branch_from_the_wheel(bare: Path, tmp_path: Path) -> None:
    place, rows = run(bare, tmp_path, f"{bare}/bin/python", "-c", STORY).splitlines()
    assert Path(place).is_relative_to(bare)
    assert rows == "[1, 2]"
    assert run(bare, tmp_path, f"{bare}/bin/bergline", "refs", "db.orders", "--catalog", "sqlite:///lake.db").count(
        "main"
    )


def test_everything_beside_the_code_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        inside = set(files.namelist())
    beside = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert beside <= inside
    assert "bergline/py.typed" in inside
    assert {name.rpartition(".")[2] for name in inside if "console/" in name} >= {"css", "html", "py"}
