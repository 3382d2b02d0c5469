"""Which lake is meant: options, environment, `bergline.toml`."""

from pathlib import Path

import pytest

from bergline import Lake, Table
from bergline.cli.settings import ConnectArguments, load_settings
from bergline.errors import InvalidInputError
from support.processes.command_line import Command, run_here


def test_the_nearest_file_above_is_read_and_its_paths_begin_there(tmp_path: Path) -> None:
    (tmp_path / "bergline.toml").write_text(
        'catalog = "sqlite:///lake/catalog.db"\nwarehouse = "files"\nname = "sales"\n'
        '[properties]\ns3.endpoint = "http://host"\n"s3.region" = "eu"\n'
    )
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    assert load_settings(inside, {}) == ConnectArguments(
        f"sqlite:///{tmp_path}/lake/catalog.db",
        str(tmp_path / "files"),
        "sales",
        {"s3.endpoint": "http://host", "s3.region": "eu"},
    )
    (inside / "bergline.toml").write_text('catalog = "https://host"\nwarehouse = "main"\n')
    assert load_settings(inside, {}) == ConnectArguments("https://host", "main")


def test_issuers_belong_to_the_lake_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "bergline.toml").write_text(
        'name = "sales"\n[oidc.corp]\nissuer = "https://id.example"\naudience = "lake"\ngroups-claim = "roles"\n'
        '[oidc.ci]\nissuer = "https://ci.example"\naudience = "lake"\n'
    )
    found = load_settings(tmp_path, {}).issuers
    assert found == {
        "corp": {"issuer": "https://id.example", "audience": "lake", "groups-claim": "roles"},
        "ci": {"issuer": "https://ci.example", "audience": "lake"},
    }
    assert ConnectArguments(name="x").before(load_settings(tmp_path, {})).issuers == found
    assert load_settings(tmp_path, {"BERGLINE_CATALOG": "memory:"}).issuers == {}


def test_the_environment_counts_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "bergline.toml").write_text('catalog = "glue://"\nwarehouse = "s3://b"\n[properties]\ntoken = "t"\n')
    found = load_settings(tmp_path, {"BERGLINE_NAME": "sales", "BERGLINE_WAREHOUSE": ""})
    assert found == ConnectArguments("glue://", "s3://b", "sales", {"token": "t"})
    # another catalog does not get the secrets of the file
    assert load_settings(tmp_path, {"BERGLINE_CATALOG": "memory:"}) == ConnectArguments("memory:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('catalog = "a"\nname = ', r"expected TOML, found invalid value in `.*bergline.toml`, line 2"),
        ('catalog = "a"\nname = x\n', r"expected TOML, found invalid value in `.*bergline.toml`, line 2, column 8"),
        ('\ncatalogue = "a"', r"expected one of `catalog`, .*, found `catalogue` in `.*`, line 2"),
        ("catalog = 5", r"expected text for `catalog` in `.*`, line 1"),
        ('properties = "a"', r"expected a table `\[properties\]` in `.*`, line 1"),
        ('oidc = "a"', r"expected a table like `\[oidc.corp\]` for each issuer in `.*`, line 1"),
        ('[oidc]\nissuer = "a"', r"expected a table like `\[oidc.corp\]` for each issuer in `.*`, line 1"),
        ('[oidc.corp]\nissuer = "a"', r"expected `audience` of issuer `corp`, found none in `.*`, line 1"),
        ("[oidc.corp]\nissuer = 5", r"expected text for `issuer` of issuer `corp` in `.*`, line 1"),
        ('[oidc.corp]\nsecret = "s"', r"expected one of .* of issuer `corp`, found `secret` in `.*`, line 1"),
        ("[properties]\ns3.port = 9", r"expected text for the property `s3.port` in `.*`, line 2"),
    ],
)
def test_broken_file_is_one_error_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bergline.toml").write_text(text)
    with pytest.raises(InvalidInputError, match=f"^{message}(\nhint: .*)?$"):
        load_settings(tmp_path, {})
    done = run_here("table", "list", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: expected ")


def test_file_that_is_no_text_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "bergline.toml").write_bytes(b"\xff")
    with pytest.raises(InvalidInputError, match="it is not UTF-8"):
        load_settings(tmp_path, {})


def test_option_counts_before_all(
    bl: Command, tmp_path: Path, lake: Lake, orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BERGLINE_CATALOG", "sqlite:///nowhere.db")
    assert bl("table", "list").returncode == 1
    done = bl("table", "list", "--catalog", f"sqlite:///{tmp_path}/catalog.db")
    assert (done.returncode, "db.orders" in done.stdout) == (0, True)
    monkeypatch.delenv("BERGLINE_CATALOG")
    (tmp_path / "inside").mkdir()
    assert "db.orders" in run_here("table", "list", cwd=tmp_path / "inside").stdout
