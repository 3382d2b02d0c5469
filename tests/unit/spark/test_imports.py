"""What tasks import: each worker waits for it before its first row."""

import subprocess
import sys

import pytest

import bergline
import bergline.spark

pytestmark = pytest.mark.long

HEAVY = {"polars", "sqlalchemy", "sqlglot", "obstore"}


@pytest.mark.parametrize("module", ["writes.task", "rows.task", "reads.arrow", "reads.deletes"])
def test_tasks_import_nothing_that_plans(module: str) -> None:
    program = f"import sys, bergline.spark.{module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert HEAVY.isdisjoint(done.stdout.split())


def test_files_with_credentials_of_a_rest_server_import_nothing_that_plans() -> None:
    program = "import sys, bergline.catalog.rest.client.files; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (HEAVY | {"urllib3"}).isdisjoint(done.stdout.split())


@pytest.mark.parametrize("package", [bergline, bergline.spark])
def test_packages_have_all_their_public_names(package: object) -> None:
    names = package.__all__  # type: ignore[attr-defined]
    assert all(callable(getattr(package, name)) for name in names)


def test_packages_have_no_other_names() -> None:
    with pytest.raises(AttributeError, match="'bergline' has no attribute 'conect'"):
        bergline.conect  # type: ignore[attr-defined]  # noqa: B018
