"""A dbt project on a lake, as the guide says; `make dbt` runs it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

import bergline
from support.paths import ROOT

PYTHON = os.environ.get("BERGLINE_DBT_PYTHON")
pytestmark = [pytest.mark.skipif(PYTHON is None, reason="needs dbt: make dbt"), pytest.mark.timeout(1200)]

MODELS = {
    "totals": "{{ config(materialized='table', partition_by=['region']) }}"
    " select region, sum(amount) as total from {{ ref('raw_orders') }} group by region",
    "appended": "{{ config(materialized='incremental', incremental_strategy='append') }}"
    " select id, amount from {{ ref('raw_orders') }}"
    " {% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}",
    "overwritten": "{{ config(materialized='incremental', incremental_strategy='insert_overwrite',"
    " partition_by=['region']) }} select id, amount, region from {{ ref('raw_orders') }}",
    "merged": "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}"
    " select id, region, amount from {{ ref('raw_orders') }}",
    "european": "{{ config(materialized='view') }} select id, amount from {{ ref('merged') }} where region = 'eu'",
}
SNAPSHOT = """{% snapshot history %}
{{ config(target_schema='shop', unique_key='id', strategy='check', check_cols=['amount']) }}
select id, amount from {{ ref('merged') }}
{% endsnapshot %}
"""
TESTS = """
models:
  - name: totals
    columns: [{name: region, data_tests: [unique, not_null]}]
  - name: merged
    columns: [{name: id, data_tests: [unique, not_null]}]
"""


def build(directory: Path, *arguments: str) -> None:
    lake = f"lake=sqlite:///{directory}/lake/catalog.db"
    settings = ("--conf", "spark.bergline.lake.create=true", "--conf", "spark.ui.enabled=false")
    done = subprocess.run(
        [str(PYTHON), "-m", "bergline.spark", "--lake", lake, *settings, "-m", "dbt.cli.main", "build", *arguments],
        cwd=directory,
        env={**os.environ, "DBT_PROFILES_DIR": str(directory), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]


def test_project_builds_again_and_again(tmp_path: Path) -> None:
    guide = (ROOT / "docs/guides/dbt.md").read_text()
    profiles, formats = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    for name in ("models", "seeds", "snapshots"):
        (tmp_path / name).mkdir()
    (tmp_path / "profiles.yml").write_text(profiles)
    (tmp_path / "dbt_project.yml").write_text(f'name: shop\nversion: "1.0"\nprofile: shop\n{formats}')
    (tmp_path / "models" / "schema.yml").write_text(TESTS)
    for name, text in MODELS.items():
        (tmp_path / "models" / f"{name}.sql").write_text(text)
    (tmp_path / "snapshots" / "history.sql").write_text(SNAPSHOT)
    seed = tmp_path / "seeds" / "raw_orders.csv"
    seed.write_text("id,region,amount\n1,eu,10.5\n2,us,3.0\n")
    build(tmp_path)
    seed.write_text("id,region,amount\n1,eu,11.5\n3,eu,7.0\n")
    build(tmp_path, "--full-refresh", "--select", "raw_orders")
    build(tmp_path, "--exclude", "raw_orders")

    def rows(name: str) -> list[tuple[object, ...]]:
        found = lake.load_table(f"shop.{name}").scan().to_arrow().to_pylist()
        return sorted(tuple(row[key] for key in sorted(row)) for row in found)

    with bergline.connect(f"sqlite:///{tmp_path}/lake/catalog.db") as lake:
        assert rows("totals") == [("eu", 18.5)]
        assert rows("appended") == [(3.0, 2), (7.0, 3), (10.5, 1)]
        assert rows("merged") == [(3.0, 2, "us"), (7.0, 3, "eu"), (11.5, 1, "eu")]
        history = lake.load_table("shop.history").scan().to_arrow().to_pylist()
        found = sorted((row["id"], row["amount"], row["dbt_valid_to"] is None) for row in history)
        assert found == [(1, 10.5, False), (1, 11.5, True), (2, 3.0, True), (3, 7.0, True)]
        assert (lake.list_views(), "european" in str(lake.list_tables())) == (["shop.european"], False)
        assert rows("overwritten") == [(3.0, 2, "us"), (7.0, 3, "eu"), (11.5, 1, "eu")]
