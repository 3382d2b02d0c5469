"""Google tokens for one table."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bergline.catalog.table_locations import FORMER_DIRECTORIES
from bergline.errors import BerglineError, UnavailableError
from bergline.governance.grants.file_actions import FileActions
from bergline.server.credentials.gcs_tokens import GcsVending, access_boundary
from bergline.server.opening import open_server
from support.fixtures.catalog_files import new_catalog_uri
from support.models.access_boundary import boundary_allows
from support.servers.asgi_client import SCHEMA, AsgiResponse, set_property, snapshot
from support.servers.google_sts_server import MACHINE_TOKEN, GoogleStsServer
from support.servers.granted_server import GrantedServer

PLACES = ["gs://b/w/t", "gcs://b/data/t/", "gs://b/w/t/data", "s3://b/x"]


@pytest.fixture
def google() -> Iterator[GoogleStsServer]:
    with GoogleStsServer() as server:
        yield server


def vending(google: GoogleStsServer, now: list[int], **properties: str) -> GcsVending:
    return GcsVending(properties, sts_url=f"http://{google.host}/v1/token", clock_ms=lambda: now[0])


def test_boundary_opens_each_directory_and_nothing_else() -> None:
    for actions in FileActions:
        opened = access_boundary(["gs://b/w/t", "gs://c/data"], actions)
        for bucket, key in (("b", "w/t/f"), ("c", "data/p=1/f")):
            assert boundary_allows(opened, "get", bucket, key)
            assert boundary_allows(opened, "create", bucket, key) is (actions >= FileActions.WRITE)
            assert boundary_allows(opened, "delete", bucket, key) is (actions >= FileActions.DELETE)
        for name in ("1-a.metadata.json", "1-a.gz.metadata.json", "1-a.metadata.json.gz", "version-hint.text"):
            assert boundary_allows(opened, "get", "b", f"w/t/metadata/{name}")
            assert not boundary_allows(opened, "create", "b", f"w/t/metadata/{name}")
            assert not boundary_allows(opened, "delete", "b", f"w/t/metadata/{name}")
        for bucket, key in (("b", "w/t2/f"), ("b", "w/f"), ("b", "data/f"), ("c", "w/t/f"), ("d", "w/t/f"), ("b", "f")):
            assert not boundary_allows(opened, "get", bucket, key), (bucket, key)
        assert boundary_allows(opened, "list", "b", prefix="w/t/metadata/")
        for prefix in ("", "w/", "w/t", "w/t2/", "data/"):
            assert not boundary_allows(opened, "list", "b", prefix=prefix), prefix


@pytest.mark.parametrize(
    "places",
    [
        ["gs://b"],
        ["gs://b/"],
        ["gs://b/t'||true||'"],
        ["gs://b/t\\"],
        ["gs://b/t\n"],
        [f"gs://b/t{n}" for n in range(6)],
    ],
)
def test_directories_that_no_boundary_can_name_are_refused(google: GoogleStsServer, places: list[str]) -> None:
    with pytest.raises(BerglineError, match=r"expected a (directory|key)|expected up to 5 directories"):
        vending(google, [0]).credentials(places, FileActions.DELETE, principal="ann")
    assert not google.boundaries


def test_tokens_are_for_one_table_and_one_access_and_live_for_a_time(
    google: GoogleStsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GCE_METADATA_HOST", google.host)
    now = [1_000_000]
    source = vending(google, now, **{"gcs.project-id": "p"})
    assert source.cached_credentials(PLACES, FileActions.DELETE, principal="ann") is None
    first = source.credentials(PLACES, FileActions.DELETE, principal="ann")
    assert first.expires_ms == now[0] + 1_800_000
    assert [c.prefix for c in first.credentials] == ["gs://b/w/t/", "gcs://b/data/t/"]
    assert first.credentials[0].config == {
        "gcs.project-id": "p",
        "gcs.oauth2.token": "downscoped-1",
        "gcs.oauth2.token-expires-at": str(first.expires_ms),
    }
    assert source.cached_credentials(PLACES, FileActions.READ, principal="ann") is None
    assert source.cached_credentials(PLACES, FileActions.DELETE, principal="bob") is None
    reading = source.credentials(PLACES, FileActions.READ, principal="ann")
    assert reading.fingerprint != first.fingerprint
    assert [boundary_allows(b, "create", "b", "w/t/f") for b in google.boundaries] == [True, False]
    now[0] += 899_000
    assert (
        source.credentials(PLACES, FileActions.DELETE, principal="ann")
        is source.cached_credentials(PLACES, FileActions.DELETE, principal="ann")
        is first
    )
    now[0] += 2_000
    assert source.cached_credentials(PLACES, FileActions.DELETE, principal="ann") is None
    google.lifetime_s = None  # then it lives as long as the token that it was made from
    assert source.credentials(PLACES, FileActions.DELETE, principal="ann").expires_ms == now[0] + 3_000_000
    assert set(google.sources) == {MACHINE_TOKEN}
    assert source.credentials(["s3://b/t", "file:///t"], FileActions.DELETE, principal="ann").credentials == ()


def test_token_of_the_server_is_exchanged_and_never_vended(google: GoogleStsServer) -> None:
    given = {"gcs.oauth2.token": "server-token", "gcs.oauth2.token-expires-at": "60000"}
    vended = vending(google, [0], **given).credentials(["gs://b/t"], FileActions.DELETE, principal="ann")
    assert google.sources == ["server-token"]
    assert vended.expires_ms == 60_000
    assert "server-token" not in json.dumps([c.config for c in vended.credentials])


def test_no_token_is_said_without_secrets(google: GoogleStsServer) -> None:
    google.refusing = True
    with pytest.raises(UnavailableError, match="says 400") as raised:
        vending(google, [0], **{"gcs.oauth2.token": "server-token"}).credentials(
            ["gs://b/t"], FileActions.DELETE, principal="ann"
        )
    assert "server-token" not in str(raised.value)
    gone = GcsVending({"gcs.oauth2.token": "server-token"}, sts_url="http://127.0.0.1:1/v1/token")
    with pytest.raises(UnavailableError, match=r"from 127\.0\.0\.1:1: ConnectionRefusedError"):
        gone.credentials(["gs://b/t"], FileActions.DELETE, principal="ann")


TABLES = "/v1/namespaces/db/tables"
WISH = {"X-Iceberg-Access-Delegation": "vended-credentials"}


@pytest.fixture
def two_tables(tmp_path: Path, google: GoogleStsServer) -> Iterator[GrantedServer]:
    """`db.orders` and `db.items`, each with data in `gs://b/new`, and before in `gs://b/old`."""
    context = open_server(new_catalog_uri(tmp_path / "lake/catalog.db"), places=["gs://b"])
    context.credentials.vending = vending(google, [0], **{"gcs.oauth2.token": "server-token"})
    granted = GrantedServer(context, "reader", "writer", "deleter", "stranger")
    granted("root", "POST", "/v1/namespaces", {"namespace": ["db"]})
    for name in ("orders", "items"):
        body = {"name": name, "schema": SCHEMA, "properties": {"write.data.path": f"gs://b/old/{name}"}}
        assert granted("root", "POST", TABLES, body).status == 200
        for update in (snapshot(1, 1), set_property("write.data.path", f"gs://b/new/{name}")):
            assert granted.commit("root", update, table=name).status == 200
    for who in ("reader", "writer", "deleter"):
        granted.grant("read", "table db.orders", who)
        granted.grant("create", "namespace db", who)
    granted.grant("write", "table db.orders", "writer", "load/*")
    granted.grant("write,drop", "table db.orders", "deleter")
    yield granted
    granted.client.application.close()


@pytest.mark.parametrize(
    ("who", "allowed"), [("reader", {"get"}), ("writer", {"get", "create"}), ("deleter", {"get", "create", "delete"})]
)
def test_boundary_that_is_asked_for_is_of_the_callers_table_and_grants(
    two_tables: GrantedServer, google: GoogleStsServer, who: str, allowed: set[str]
) -> None:
    vended = two_tables(who, "GET", f"{TABLES}/orders/credentials")
    assert [c["config"]["gcs.oauth2.token"] for c in vended.json["storage-credentials"]] == ["downscoped-1"]
    (boundary,) = google.boundaries

    def found(key: str) -> set[str]:
        return {name for name in ("get", "create", "delete") if boundary_allows(boundary, name, "b", key)}

    for key in ("new/orders/f.parquet", "old/orders/f.parquet"):
        assert found(key) == allowed, key
    for key in ("new/items/f", "old/items/f", "new/orders2/f", "new/f", "old/orders", "f"):
        assert found(key) == set(), key
    for prefix, is_listed in (("new/orders/", True), ("old/orders/p=1/", True), ("old/items/", False), ("old/", False)):
        assert boundary_allows(boundary, "list", "b", prefix=prefix) is is_listed, prefix


@pytest.mark.parametrize("place", ["gs://b/new/items", "gs://b/old/items/x", "gs://b/old", "gcs://b/old/items"])
@pytest.mark.parametrize("named", ["write.data.path", FORMER_DIRECTORIES])
def test_no_boundary_is_asked_for_in_the_directories_of_another_table(
    two_tables: GrantedServer, google: GoogleStsServer, place: str, named: str
) -> None:
    properties = {named: json.dumps([place]) if named == FORMER_DIRECTORIES else place}

    def made(stage_create: bool) -> AsgiResponse:
        body = {"name": "mine", "schema": SCHEMA, "properties": properties, "stage-create": stage_create}
        return two_tables("deleter", "POST", TABLES, body, headers=WISH)

    for answer in (made(stage_create=False), made(stage_create=True)):
        assert answer.error == (403, "ForbiddenException"), answer
    moved = two_tables.commit("deleter", {"action": "set-properties", "updates": properties})
    assert moved.error == (403, "ForbiddenException"), moved
    assert two_tables("stranger", "GET", f"{TABLES}/orders/credentials").status == 404
    assert not google.boundaries
