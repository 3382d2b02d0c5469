"""Hints to install extras name packages that are on an index."""

import importlib.metadata

import pytest

from bergline.extras import install_hint


@pytest.mark.parametrize(
    ("extra", "hint"),
    [
        ("postgres", "pip install 'psycopg[binary]>=3.2', the extra `postgres` of bergline"),
        ("cli", "pip install 'rich>=13' 'typer>=0.15', the extra `cli` of bergline"),
        ("other", "install the extra `other` of bergline"),
    ],
)
def test_hint_names_the_packages_of_the_extra(extra: str, hint: str) -> None:
    assert install_hint(extra) == hint


def test_markers_of_requirements_are_left_out() -> None:
    hint = install_hint("server")
    assert "'uvloop>=0.21'" in hint
    assert ";" not in hint


def test_package_that_is_not_installed_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "requires", missing)
    assert install_hint("cli") == "install the extra `cli` of bergline"
