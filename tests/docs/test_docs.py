"""Docs that cannot drift: examples run, links lead somewhere, every name is documented."""

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import bergline.errors
from bergline import Lake, Table
from bergline.catalog.glue.settings import GLUE_PROPERTIES, GLUE_REFUSED
from bergline.catalog.protection.caller import acting_as
from bergline.catalog.protection.ref_rule import RefRule
from bergline.catalog.rest.client.settings import REST_PROPERTIES
from bergline.catalog.sql.records import records_of
from bergline.cli.main import COMMANDS, load_command
from bergline.cli.settings import load_settings
from bergline.governance.grants.privilege import Privilege
from bergline.io.store_properties import STORE_PROPERTIES
from bergline.server.opening import open_server
from bergline.spark.runtime.executors import NEEDED_FOR_OBJECTS, NEEDED_FOR_PLANNING
from bergline.spark.streaming.options import STREAM_OPTIONS
from bergline.sql.procedures.registry import PROCEDURES
from bergline.sql.statements.registry import HEADS
from bergline.table.inspection.metadata_tables import METADATA_TABLES
from support.doc_examples import code_blocks, output_of, output_of_example, page
from support.fixtures.catalog_files import new_catalog_uri
from support.fixtures.rows import order_rows
from support.fixtures.sql_statements import run_text
from support.paths import ROOT
from support.processes.command_line import run_here
from support.servers.bergline_server import BerglineServer
from support.servers.oidc_issuer import OidcIssuerServer
from support.servers.server_on_socket import on_socket
from support.servers.webhook_receiver import WebhookReceiver

TOP = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
PAGES = [*(ROOT / name for name in TOP), *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTED_ELSEWHERE = {"serve", "sql"}  # with options that their guides explain
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files(path: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text())
    missing = [link for link in links if not (path.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_headings(path: Path) -> None:
    links = re.findall(r"\]\(([^)#]*\.md)?#([^)]+)\)", path.read_text())
    missing = [(page, anchor) for page, anchor in links if anchor not in anchors(path.parent / page if page else path)]
    assert not missing


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_row_is_in_a_table(path: Path) -> None:
    lost = re.findall(r"(?:^|\n)\n(\|.*)\n(?!\|--)", path.read_text())  # after an empty line a table begins
    assert not lost


@pytest.mark.parametrize("path", [p for p in PAGES if p.name != "python.md"], ids=lambda p: str(p.relative_to(ROOT)))
def test_lines_of_prose_end_at_120_characters(path: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\n\n(?: {4}.*\n+)+", "\n\n", text)  # indented code
    prose = [line for line in text.splitlines() if not line.startswith("|")]
    long = [line for line in prose if len(line) > 120 and " " in re.sub("`[^`]+`", "code", line.strip())]
    assert not long  # what has no place to break is code or a link


@functools.cache
def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_option_of_a_stream_is_documented() -> None:
    table = page("guides/streaming.md").partition("| option |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE) == list(STREAM_OPTIONS)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_readme_example_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in example.splitlines() if line]) == 10
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "|  2|  20.0|" in done.stdout


@pytest.mark.spark
def test_merge_of_the_guide_runs(spark: SparkSession, lake: Lake) -> None:
    (statement,) = re.findall(r"## MERGE INTO\n\n```sql\n(.*?)```", page("guides/changing-rows-on-spark.md"), re.DOTALL)
    columns = "AS v(id, region, amount)"
    spark.sql(f"CREATE TABLE db.orders AS SELECT * FROM VALUES (1L, 'eu', 10D), (2L, 'us', 500D) {columns}")
    rows = f"SELECT * FROM VALUES (1L, 'eu', 11D), (3L, 'eu', 3D) {columns}"
    spark.sql(f"CREATE OR REPLACE TEMP VIEW changes AS {rows}")
    spark.sql(statement)
    found = lake.load_table("db.orders").scan().to_arrow().sort_by("id").to_pydict()
    assert (found["id"], found["amount"]) == ([1, 2, 3], [11.0, 100.0, 3.0])


def test_statements_of_the_guide_to_views_run(spark: SparkSession, lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1, 2))
    (example,) = re.findall(r"```sql\n(.*?)```", page("guides/views.md"), re.DOTALL)
    results = [spark.sql(statement).collect() for statement in example.split(";") if statement.strip()]
    assert len(results[1]) == 1
    assert lake.list_views("db") == []


def test_readme_shows_figures_of_the_benchmarks() -> None:
    rows = re.findall(r"^\| ([^|]+?)(, 8 clients)? \| [^|]*\| ([\d.]+) \|$", README, re.MULTILINE)
    assert len(rows) == 10
    measured = [[cell.strip() for cell in line.split("|")] for line in page("benchmarks.md").splitlines()]
    for case, clients, figure in rows:
        lines = [line for line in measured if len(line) > 1 and line[1] == case and (not clients or line[2] == "8")]
        assert any(figure in line for line in lines), (case, figure)


def test_example_without_spark_runs(tmp_path: Path) -> None:
    output = output_of_example("README.md", tmp_path)
    assert "click" in output


def test_python_in_one_page_runs(tmp_path: Path) -> None:
    output = output_of_example("guides/python-in-one-page.md", tmp_path)
    assert "staging branch" in output


def test_guide_to_evolution_runs(tmp_path: Path) -> None:
    output = output_of_example("guides/evolution.md", tmp_path)
    assert "{'id': 1, 'items': 3, 'since': datetime.date(2026, 1, 1), 'note': None}" in output


def test_guide_to_catalogs_runs(tmp_path: Path) -> None:
    output = output_of_example("guides/catalogs.md", tmp_path)
    assert output.splitlines() == [
        "{'comment': 'all orders'} ['db.raw', 'db.raw.eu']",
        """['db.european'] SELECT "id" FROM orders""",
        "5",
    ]


def test_guide_to_transactions_runs(tmp_path: Path) -> None:
    output = output_of_example("guides/transactions.md", tmp_path)
    assert output.split() == ["3", "1", "4", "3"]


def test_guide_to_branches_of_the_lake_runs(tmp_path: Path) -> None:
    lines = output_of_example("guides/lake-branches.md", tmp_path).splitlines()
    assert lines[:2] == ["sales.orders 2 0 1 1", "published `staging` into `main`, 1 table:"]
    commands, _to_serve = code_blocks("guides/lake-branches.md", "sh")
    catalog = ("--catalog", f"sqlite:///{tmp_path}/everybody/catalog.db")
    for line in commands.splitlines():
        engine = ("--engine", "duckdb") if " sql " in line else ()  # Spark takes long to start
        done = run_here(*shlex.split(line)[1:], *catalog, *engine, cwd=tmp_path)
        assert done.returncode == 0, (line, done.stderr)


def test_guide_to_maintenance_of_many_tables_runs(tmp_path: Path) -> None:
    lines = output_of_example("guides/maintain-many-tables.md", tmp_path).splitlines()
    assert lines[0] == "maintenance plan of 3 tables, 2 planned, 6 nothing to do, 1 skipped"
    assert lines[-4:] == [
        "db.archive [('None', 'skipped', None)]",
        "db.clicks [('compaction', 'done', 1), ('expiry', 'nothing to do', None)]",
        "db.orders [('compaction', 'done', 1), ('expiry', 'nothing to do', None)]",
        "0",
    ]


@pytest.mark.server
def test_guide_to_serving_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", page("guides/serving.md"), re.DOTALL)
    with BerglineServer(tmp_path) as server:
        here = example.replace("http://127.0.0.1:8181", server.uri)
        assert output_of(here, tmp_path).splitlines() == ["[1, 3]", "3", "2"]


def test_guide_to_serving_names_every_option() -> None:
    table = page("guides/serving.md").partition("| option |")[2].partition("\n\n")[0]
    spellings = [{*option.opts, *option.secondary_opts} for option in load_command("serve").params]
    listed = set(re.findall(r"`(--[a-z-]+)", table))
    assert listed <= set().union(*spellings)
    assert [names for names in spellings if not names & listed and not min(names).startswith("--oidc-")] == []


@pytest.mark.server
def test_guide_to_dropped_tables_runs(tmp_path: Path) -> None:
    example = "\n".join(re.findall(r"```python\n(.*?)```", page("guides/undrop.md"), re.DOTALL))
    with BerglineServer(tmp_path, "--drop-retention", "7d") as server:
        here = example.replace("http://127.0.0.1:8181", server.uri)
        assert output_of(here, tmp_path).splitlines() == [
            "['db.orders']",
            "2",
            "SELECT id FROM orders WHERE id > 1",
            "['main', 'v1']",
        ]


@pytest.mark.server
def test_guide_to_identity_runs(tmp_path: Path) -> None:
    (example,) = code_blocks("guides/identity.md", "python")
    with OidcIssuerServer() as issuer:
        (tmp_path / "token.jwt").write_text(issuer.token())
        with BerglineServer(tmp_path, "--oidc-issuer", issuer.url, "--oidc-audience", "bergline") as server:
            here = example.replace("http://127.0.0.1:8181", server.uri)
            assert output_of(here, tmp_path).splitlines() == ["[('db',)]"]


def test_guide_to_identity_names_every_option_of_issuers(tmp_path: Path) -> None:
    (settings,) = code_blocks("guides/identity.md", "toml")
    (tmp_path / "bergline.toml").write_text(settings)
    assert set(load_settings(tmp_path, {}).issuers) == {"corp", "ci"}
    options = {option.opts[0] for option in load_command("serve").params if option.opts[0].startswith("--oidc")}
    assert options == set(re.findall(r"^\| `(--oidc-[a-z-]+)` \|", page("guides/identity.md"), re.MULTILINE))


def test_guide_to_events_runs(tmp_path: Path) -> None:
    follow, verify = re.findall(r"```python\n(.*?)```", page("guides/events.md"), re.DOTALL)
    with WebhookReceiver() as receiver, BerglineServer(tmp_path, "--webhook-allow", "127.0.0.1") as server:
        made = run_here("webhook", "create", receiver.url, "--catalog", server.uri, cwd=tmp_path)
        lines = output_of(follow.replace("http://127.0.0.1:8181", server.uri), tmp_path).splitlines()
        assert receiver.waits_for(6)
    assert [line.split()[1:] for line in lines[:-1]] == [
        ["namespace.create", "namespace/db"],
        ["table.create", "table/db/orders"],
        ["table.commit", "table/db/orders"],
        ["ref.create", "table/db/orders", "main"],
    ]
    assert lines[-1] == "['table.commit', 'ref.create']"
    names: dict[str, Any] = {}
    exec(verify, names)  # noqa: S102
    secret = made.stdout.splitlines()[1]
    assert receiver.positions == [1, 2, 3, 4, 5, 6]
    for message in receiver.messages:
        assert names["is_genuine"](secret, message.headers, message.body)
        assert not names["is_genuine"](secret, message.headers, b"[1]")


@pytest.mark.server
def test_guide_to_pull_requests_runs(tmp_path: Path) -> None:
    example, _ = re.findall(r"```python\n(.*?)```", page("guides/pull-requests.md"), re.DOTALL)
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db", create=True) as lake:
        for name in ("ann", "bob"):
            records_of(lake.catalog).tokens.create(name, f"bl_{name}", 1, None)
    with BerglineServer(tmp_path) as server:
        here = example.replace("http://127.0.0.1:8181", server.uri)
        assert output_of(here, tmp_path).splitlines() == [
            "db.items up to date 0",
            "db.orders fast-forward 1",
            "look again",
            "('bob',) ()",
            "published 2",
        ]


@pytest.mark.server
def test_guide_to_grants_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = "\n".join(re.findall(r"```python\n(.*?)```", page("guides/grants.md"), re.DOTALL))
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db", create=True) as lake:
        records = records_of(lake.catalog)
        records.tokens.create("ann", "bl_of_ann", 0, None)
        for name, groups in ("etl", ()), ("ci", ()), ("ada", ("analysts",)), ("bob", ("analysts",)):
            records.tokens.create(name, f"bl_{name}", 0, None, groups=groups)
    with BerglineServer(tmp_path) as server:
        here = example.replace("http://127.0.0.1:8181", server.uri).replace("bl_…", "bl_of_ann")
        here = here.replace("sqlite:///lake/catalog.db", f"sqlite:///{tmp_path}/catalog.db")
        tables, refused, hidden, grants = output_of(here, tmp_path).splitlines()
        assert review_by_recipe(tmp_path, server.uri, monkeypatch) == ["open", "open", "open", "published"]
    assert tables == "['db.orders']"
    assert refused.startswith("expected the privilege `write` on table `db.orders` for ref `main`, found that `ann`")
    assert "db.salaries" in hidden
    assert grants == "['publish on table db.orders ref main to ann']"


def review_by_recipe(directory: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grant as the guide says, and review as it says; the state of the pull request after each step."""
    catalog, states = f"sqlite:///{directory}/catalog.db", []
    with bergline.connect(catalog) as lake:
        lake.create_namespace("shop")
        lake.create_table("shop.orders", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1]}))
    blocks = code_blocks("guides/grants.md", "sh")
    recipe, review = (next(b for b in blocks if what in b) for what in ("bergline rule set", "bergline pr create"))
    for line in recipe.splitlines():
        done = run_here(*shlex.split(line)[1:], "--catalog", catalog, cwd=directory)
        assert done.returncode == 0, (line, done.stderr)
    with bergline.connect(server, properties={"token": "bl_etl"}) as lake:
        lake.load_table("shop.orders").append(pa.table({"id": [2]}), branch="etl/monday")
    for line, who in zip(review.splitlines(), ("etl", "ci", "ada", "bob"), strict=True):
        monkeypatch.setenv("BERGLINE_TOKEN", f"bl_{who}")
        done = run_here(*shlex.split(line, comments=True)[1:], "--catalog", server, "--json", cwd=directory)
        assert done.returncode == 0, (line, done.stderr)
        states.append(json.loads(done.stdout)["state"])
    return states


def test_guide_to_grants_names_every_privilege() -> None:
    table = page("guides/grants.md").partition("| privilege |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE) == [*Privilege]


@pytest.mark.server
@pytest.mark.parametrize(
    "name",
    [
        "guides/python-in-one-page.md",
        "guides/transactions.md",
        "guides/several-tables.md",
        "guides/lake-branches.md",
        "guides/refs.md",
        "guides/catalogs.md",
    ],
)
def test_what_works_on_a_database_works_on_a_server(name: str, tmp_path: Path) -> None:
    """The guides of other catalogs, word for word, on `bergline serve`."""
    (example,) = re.findall(r"```python\n(.*?)```", page(name), re.DOTALL)
    context = open_server(new_catalog_uri(tmp_path / "catalog.db"))
    with on_socket(context) as port:
        (here, changed) = re.subn(r'connect\("sqlite:[^"]*"', f'connect("http://127.0.0.1:{port}"', example)
        assert changed == 1
        (tmp_path / "python").mkdir()
        output_of(here, tmp_path)
    context.catalog.close()


def test_guide_to_maintenance_runs(tmp_path: Path) -> None:
    output = output_of_example("guides/maintenance.md", tmp_path)
    assert output == "9 1 1\n13\n"


def test_guide_to_changing_rows_runs(tmp_path: Path) -> None:
    first, changed, *_ = re.findall(r"```python\n(.*?)```", page("guides/changing-rows.md"), re.DOTALL)
    printed = output_of(first, tmp_path).splitlines()
    assert printed == ["[1, 6, 30, 31]", "4 1", "conflict conflict", "conflict conflict"]
    counts = "RowCounts(rows_updated=2, rows_inserted=1, rows_deleted=1)"
    assert output_of(changed, tmp_path).splitlines() == ["1 1", counts, "[1, 3, 4, 5, 9, 10]"]


def test_guide_to_refs_runs(tmp_path: Path) -> None:
    output = output_of_example("guides/refs.md", tmp_path)
    assert output == "Refs(branch 'main', tag 'v1', branch 'dev', tag 'nightly')\n"


def test_guide_to_protected_refs_runs(tmp_path: Path) -> None:
    of_table, of_many = code_blocks("guides/protected-refs.md", "python")
    refused, rules = output_of(of_table, tmp_path).splitlines()
    assert refused.startswith("branch `main` of table `db.orders` is protected by the rule `main`: it moves only by ")
    assert rules == "['main', 'v*']"
    refused, *_, protection = output_of(of_many, tmp_path).splitlines()
    assert "the rule `main` of namespace `db`: it moves only to a snapshot on which `nulls` passed" in refused
    assert protection == "['`main` of the catalog', '`main` of namespace `db`']"


def test_rule_as_text_in_the_guide_is_one(orders: Table, lake: Lake) -> None:
    (statements,) = re.findall(r"```sql\n(.*?)```", page("guides/protected-refs.md"), re.DOTALL)
    protect, unprotect = statements.strip().split(";\n")
    run_text(lake, protect)
    (rule,) = orders.refresh().refs.rules()
    assert (rule.pattern, rule.only_publish, rule.fast_forward_only, rule.bypass) == ("main", True, True, ("ann",))
    with acting_as("ann"):
        run_text(lake, unprotect.removesuffix(";"))
    assert orders.refresh().refs.rules() == ()


def test_guide_to_protected_refs_names_every_part_of_a_rule() -> None:
    table = page("guides/protected-refs.md").partition("| argument |")[2].partition("\n\n")[0]
    assert {"pattern", *re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)} == set(RefRule.__struct_fields__)


def test_guide_to_orphan_files_runs(tmp_path: Path) -> None:
    output = output_of_example("guides/orphan-files.md", tmp_path)
    assert "1 may go (11 B):" in output


def test_guide_to_merging_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", page("guides/merge.md"), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_guide_to_several_tables_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", page("guides/several-tables.md"), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said = re.sub(r"[0-9]{10,}", "…", done.stdout)
    (shown,) = re.findall(r"```text\n(.*?)```", page("guides/several-tables.md"), re.DOTALL)
    assert said == shown


def run_on_spark(name: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run the one example of a guide, which starts Spark."""
    (example,) = re.findall(r"```python\n(.*?)```", page(name), re.DOTALL)
    return subprocess.run(
        [sys.executable, "-c", example],
        cwd=directory,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_guide_to_starting_runs(tmp_path: Path) -> None:
    done = run_on_spark("guides/start.md", tmp_path)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr[-2000:]
    assert (tmp_path / "lake" / "catalog.db").is_file()


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_guide_to_branches_of_the_lake_runs_in_spark(tmp_path: Path) -> None:
    done = run_on_spark("guides/lake-branches-spark.md", tmp_path)
    (shown,) = re.findall(r"```text\n(.*?)```", page("guides/lake-branches-spark.md"), re.DOTALL)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith(shown)
    assert "published `staging` into `main`, 2 tables" in done.stdout


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_guide_to_pipelines_runs(tmp_path: Path) -> None:
    done = run_on_spark("guides/pipeline.md", tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "published and tagged `daily-2026-03-31-final`" in done.stdout


def test_guide_to_expiry_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", page("guides/expiry.md"), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (shown,) = re.findall(r"```text\n(.*?)```", page("guides/expiry.md"), re.DOTALL)
    assert _without_numbers(done.stdout) == _without_numbers(shown)


def _without_numbers(text: str) -> list[str]:
    """Lines of a plan without ids, times and sizes, which differ from run to run."""
    return [re.sub(r"\b\d{9,}\b|\d{4}-\d\d-\d\d \S+|[\d.]+ (KiB|B)", "…", line) for line in text.splitlines()]


def test_page_on_metadata_tables_runs(tmp_path: Path) -> None:
    output = output_of_example("reference/metadata-tables.md", tmp_path)
    assert output.splitlines() == ["{'region': 'eu'} 2 1", "2 1", "3 [0, 2]"]


@pytest.mark.parametrize("name", METADATA_TABLES)
def test_every_metadata_table_is_documented(name: str) -> None:
    assert f"\n| `{name}` |" in page("reference/metadata-tables.md")


def test_guide_to_publishing_runs_without_spark(tmp_path: Path) -> None:
    (example,) = re.findall(
        r"## Without Spark\n\n```python\n(.*?)```", page("guides/write-audit-publish.md"), re.DOTALL
    )
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "1 2\n2\n"


@pytest.mark.parametrize(
    "path", [p for p in PAGES if p.parent.name in {"guides", "concepts", "reference"}], ids=lambda p: p.name
)
def test_every_page_is_linked_from_the_index(path: Path) -> None:
    assert f"({path.parent.name}/{path.name})" in page("README.md")


def test_start_here_has_three_links() -> None:
    section = README.partition("## Start here\n")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\d\. \[", section, re.MULTILINE)) == 3


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_there_is_one_way_to_install(path: Path) -> None:
    shown = set(re.findall(r"pip install \S+", path.read_text()))
    assert {command for command in shown if not command.startswith("pip install '.[")} == set()


@pytest.mark.parametrize("name", [n for n in vars(bergline.errors) if n.endswith("Error") and n != "BerglineError"])
def test_every_error_is_documented_with_its_code(name: str) -> None:
    assert f"| `{name}` | `{getattr(bergline.errors, name).code}` |" in page("reference/errors.md")


@pytest.mark.parametrize("name", PROCEDURES)
def test_every_procedure_is_documented_with_its_arguments(name: str) -> None:
    arguments = ", ".join(f"`{p.name}`" for p in PROCEDURES[name].parameters)
    assert f"| `{name}` | {arguments} |" in page("reference/statements.md")


@pytest.mark.parametrize("head", HEADS)
def test_every_statement_is_documented(head: str) -> None:
    lines = [set(re.findall(r"\w+", line)) for line in (ROOT / "docs/reference/statements.md").read_text().splitlines()]
    synonyms = {"DESC": "DESCRIBE", "DATABASE": "NAMESPACE", "SCHEMA": "NAMESPACE"}
    words = {synonyms.get(word, word) for word in head.split()}
    assert any(words <= line for line in lines)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented_with_its_own_options(name: str) -> None:
    lines = [line for line in page("reference/cli.md").splitlines() if line.startswith(f"| `bergline {name}")]
    found = load_command(name)
    of_all = {"--catalog", "--warehouse", "--name", "--property", "--json", "--yes", "--help"}
    for inner, command in getattr(found, "commands", {"": found}).items():
        whole = f"bergline {name} {inner}".rstrip()
        (line,) = (line for line in lines if re.match(rf"\| `{whole}[ `]", line))
        assert line.count(" | ") == 2
        if name not in DOCUMENTED_ELSEWHERE:
            options = {option.opts[0] for option in command.params if option.opts[0].startswith("--")} - of_all
            others = page("reference/cli.md") if inner in {"retention", "create"} else line
            assert not [option for option in options if option not in others]


def test_every_property_that_the_code_reads_is_documented() -> None:
    source = "\n".join(p.read_text() for p in (ROOT / "src").rglob("*.py"))
    used = set(re.findall(r'"((?:commit|write|history|gc)\.[a-z.-]+)"', source))
    assert len(used) > 10
    documented = (
        page("reference/properties.md")
        .replace("`.min-wait-ms`", "`commit.status-check.min-wait-ms`")
        .replace("`.max-wait-ms`", "`commit.status-check.max-wait-ms`")
    )
    assert {name for name in used if f"`{name}`" not in documented} == set()


@pytest.mark.parametrize("name", STORE_PROPERTIES)
def test_every_storage_property_is_documented(name: str) -> None:
    assert f"`{name}`" in page("guides/object-stores.md")


@pytest.mark.parametrize("name", [*GLUE_PROPERTIES, *GLUE_REFUSED])
def test_every_property_of_glue_is_documented(name: str) -> None:
    assert f"`{name}`" in page("guides/glue.md")


@pytest.mark.parametrize("name", REST_PROPERTIES)
def test_every_property_of_rest_catalogs_is_documented(name: str) -> None:
    assert f"`{name}`" in page("guides/rest-catalogs.md")


def test_no_address_of_a_registry_or_path_of_a_machine_is_committed() -> None:
    lock = (ROOT / "requirements-dev.lock").read_text()
    assert not re.search(r"https?:|file:|@ ", lock)
    assert all("==" in line for line in lock.splitlines() if line and not line.startswith("#"))


def test_guide_names_what_executors_need() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", page("guides/clusters.md"), re.MULTILINE)
    assert dict(rows) == NEEDED_FOR_OBJECTS | NEEDED_FOR_PLANNING
