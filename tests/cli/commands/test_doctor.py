"""`bergline doctor`: what is wrong, and what would mend it; whatever is broken, the rest is looked at."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.fixtures.damaged_tables import new_table, open_lake
from support.processes.command_line import run_here


def doctor(directory: Path, *arguments: str) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    done = run_here("doctor", "--json", *arguments, cwd=directory)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["ok"] == (done.returncode == 0)
    by_subject: dict[str, list[dict[str, Any]]] = {}
    for one in found["checks"]:
        by_subject.setdefault(one["subject"], []).append(one)
    return done.returncode, by_subject


def test_healthy_lake_leaves_nothing_behind(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        new_table(lake)
    before = sorted(tmp_path.rglob("*"))
    done = run_here("doctor", "--catalog", f"sqlite:///{tmp_path}/catalog.db", cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0].startswith("ok Python")
    assert any(line.startswith("ok catalog ") and line.endswith("with 1 table") for line in lines)
    assert any(line.startswith("ok warehouse ") and line.endswith("is writable") for line in lines)
    assert sorted(tmp_path.rglob("*")) == before


def test_without_a_lake_it_says_how_to_make_one(tmp_path: Path) -> None:
    code, found = doctor(tmp_path)
    assert (code, found["catalog"][0]["health"]) == (0, "note")
    assert "quickstart" in found["catalog"][0]["mend"]
    assert list(tmp_path.iterdir()) == []


def test_broken_settings_file_is_reported_with_the_rest(tmp_path: Path) -> None:
    (tmp_path / "bergline.toml").write_text('catalog = "sqlite:///x.db"\ncatalog\n')
    code, found = doctor(tmp_path)
    assert code == 1
    assert "line 2" in found["settings"][0]["message"]
    assert {"Python", "packages", "Java", "Spark"} <= set(found)


def test_missing_catalog_is_an_error_with_near_ones(tmp_path: Path) -> None:
    open_lake(tmp_path).close()
    code, found = doctor(tmp_path, "--catalog", f"sqlite:///{tmp_path}/catalogue.db")
    assert (code, found["catalog"][0]["health"]) == (1, "error")
    assert "catalog.db" in found["catalog"][0]["mend"]


def test_warehouse_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    open_lake(tmp_path).close()
    (tmp_path / "wh").write_text("")
    code, found = doctor(tmp_path, "--catalog", f"sqlite:///{tmp_path}/catalog.db", "--warehouse", f"{tmp_path}/wh")
    assert (code, found["warehouse"][0]["health"]) == (1, "error")
    assert found["warehouse"][0]["mend"]


def test_missing_or_old_java_and_wrong_variables_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_292\"' >&2\n")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", "python-of-nobody")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    _, found = doctor(tmp_path)
    assert "cannot run" in found["Java"][0]["message"]  # it is not executable
    java.chmod(0o755)
    code, found = doctor(tmp_path)
    assert (code, found["Java"][0]["message"]) == (1, f"version 8 at {java}")
    assert "Java 17" in found["Java"][0]["mend"]
    messages = [one["message"] for one in found["Spark"]]
    assert any("PYSPARK_PYTHON" in message for message in messages)
    assert any("SPARK_HOME" in message for message in messages)


def test_passwords_are_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERGLINE_CATALOG", "postgresql://me:secret@localhost:1/lake")
    done = run_here("doctor", cwd=tmp_path)
    assert (done.returncode, "secret" in done.stdout + done.stderr) == (1, False)
