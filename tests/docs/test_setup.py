"""What `make demo` and `make test` set up: the demo's few packages first, in the same versions, from pip's index."""

import importlib.util
import os
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from support.paths import ROOT


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_guide_to_dbt_names_the_versions_that_are_tried() -> None:
    (versions,) = re.findall(r"^DBT_VERSIONS := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    guide = (ROOT / "docs" / "guides" / "dbt.md").read_text()
    assert [f"`{version}`" in guide for version in versions.split()] == [True, True]


def test_lock_of_the_demo_is_what_the_demo_needs() -> None:
    lock = tool("demo_lock")
    assert lock.LOCK.read_text() == lock.render(), f"run {lock.COMMAND}"


def test_versions_of_the_demo_are_those_of_the_tests_and_no_address_is_committed() -> None:
    demo, dev = (
        [line for line in (ROOT / f"requirements-{name}.lock").read_text().splitlines() if not line.startswith("#")]
        for name in ("demo", "dev")
    )
    assert set(demo) <= set(dev)
    assert len(demo) < len(dev) / 2
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in demo)
    assert any(line.startswith("uv==") for line in dev)


CONFIGURED = r"""
global.cert='/etc/roots.pem'
global.index-url='https://everybody.example/simple'
install.extra-index-url='https://one.example/simple\nhttps://two.example/simple'
:env:.index-url='https://mine.example/simple'
:env:.find-links='/opt/a /opt/b'
:env:.disable-pip-version-check='1'
"""


def test_uv_takes_the_settings_of_pip() -> None:
    assert tool("install").uv_environment(CONFIGURED) == {
        "SSL_CERT_FILE": "/etc/roots.pem",
        "UV_DEFAULT_INDEX": "https://mine.example/simple",
        "UV_INDEX": "https://one.example/simple https://two.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": "/opt/a,/opt/b",
    }


@pytest.mark.parametrize("what", ["demo", "dev"])
def test_an_environment_that_is_a_link_is_left_alone(tmp_path: Path, what: str) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "setup.sh").write_bytes((ROOT / "tools" / "setup.sh").read_bytes())
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".venv").symlink_to(tmp_path / "elsewhere")
    done = subprocess.run(
        ["bash", "tools/setup.sh", what],  # noqa: S607
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert done.returncode == 1
    assert ".venv is a link" in done.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []
