"""Orphan files on a real S3 server, also where the catalog itself lives in the warehouse."""

import datetime as dt
from collections.abc import Iterator

import pytest

import bergline
from bergline import Lake, Table
from bergline.errors import RefusedError
from bergline.table.orphans.plan import OrphanPlan
from support.fixtures.rows import ORDERS, ids, order_rows
from support.servers.s3_server import S3Server

NAMES = ("data/x y.parquet", "data/100%.parquet", "data/a%20b", "data/a+b#c", "data/ünï/日本", "metadata/x.avro")


@pytest.fixture
def lake(s3_server: S3Server, bucket: str) -> Iterator[Lake]:
    """Pointers and tables in one bucket, without a database."""
    with bergline.connect(f"{bucket}/lake", properties=s3_server.properties, create=True) as opened:
        opened.create_namespace("db")
        yield opened


def plan_all(table: Table) -> OrphanPlan:
    """As in a week: everything is old."""
    return table.plan_orphans(older_than=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1), allow_recent=True)


def strays(table: Table) -> list[str]:
    locations = [f"{table.location}/{name}" for name in (*NAMES, *(f"data/p={n}/q={n % 3}/f" for n in range(40)))]
    for location in locations:
        table.io.create(location, b"stray")
    return sorted(locations)


def test_strays_go_and_every_ref_reads_the_same(lake: Lake) -> None:
    table = lake.create_table("db.orders", ORDERS, partition_by=["region"])
    table.append(order_rows(1)).append(order_rows(2, region="a b/c"))
    table.refs.create_branch("dev")
    table.append(order_rows(3), branch="dev")
    planted = strays(table)
    assert table.plan_orphans().files == ()
    plan = plan_all(table)
    assert [f.location for f in plan.files] == planted
    result = table.sweep_orphans(plan)
    assert (sorted(result.deleted), result.deleted_bytes) == (planted, 5 * len(planted))
    assert plan_all(table).files == ()
    assert ids(table.scan().to_arrow()) == [1, 2]
    assert ids(table.scan(ref="dev").to_arrow()) == [1, 2, 3]


def test_the_catalog_is_no_orphan_of_a_table_around_it(lake: Lake, bucket: str) -> None:
    table = lake.create_table("db.around", ORDERS, location=f"{bucket}/lake").append(order_rows(1))
    planted = strays(table)
    catalog = table.io.list(f"{bucket}/lake/catalog")
    assert catalog
    assert sorted(table.sweep_orphans(plan_all(table)).deleted) == planted
    assert table.io.list(f"{bucket}/lake/catalog") == catalog
    assert ids(lake.load_table("db.around").scan().to_arrow()) == [1]
    lake.create_table("db.inside", ORDERS)
    with pytest.raises(RefusedError, match=r"`db\.inside` has files in"):
        plan_all(table)


def test_other_schemes_for_the_same_bucket_are_equal(lake: Lake) -> None:
    table = lake.create_table("db.orders", ORDERS).append(order_rows(1))
    table.set_location(table.location.replace("s3://", "s3a://"))
    table.append(order_rows(2))
    planted = strays(table)
    assert [f.location for f in plan_all(table).files] == planted
    table.sweep_orphans(plan_all(table))
    assert ids(table.scan().to_arrow()) == [1, 2]


def test_the_versions_of_a_version_hint_catalog_stay(s3_server: S3Server, bucket: str) -> None:
    with bergline.connect(f"version-hint:{bucket}/warehouse", properties=s3_server.properties, create=True) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", ORDERS, properties={"write.metadata.previous-versions-max": "1"})
        for number in range(3):
            table.append(order_rows(number))
        planted = strays(table)
        assert [f.location for f in plan_all(table).files] == planted
        table.sweep_orphans(plan_all(table))
        assert ids(lake.load_table("db.t").scan().to_arrow()) == [0, 1, 2]
