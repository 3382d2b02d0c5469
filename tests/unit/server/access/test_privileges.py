"""The matrix: every endpoint, by callers with each privilege, the owner, and those with none or with others."""

import gzip
import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import sqlalchemy as sa

from bergline.catalog.catalog import DroppedTable
from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.protocol.endpoints import Endpoint
from bergline.catalog.sql.governance_layout import PULL_REQUESTS
from bergline.catalog.sql.layout import NAMESPACES, TABLES
from bergline.governance.endpoints import ENDPOINTS
from bergline.governance.grants.grant import make_grants, principal
from bergline.governance.grants.privilege import IMPLIED, Privilege
from bergline.governance.grants.securable import namespace_of
from bergline.governance.grants.store import SqlGrants
from bergline.governance.pull_requests.model import ProposedTable, PullRequestRecord
from bergline.server.access.authenticator import Authenticator
from bergline.server.access.privileges import ENDPOINT_ACCESS
from bergline.server.context.context import ServerContext
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from support.servers.asgi_client import SCHEMA, AsgiClient, AsgiResponse, bearer, set_branch, set_property, snapshot
from support.servers.granted_server import with_lists

pytestmark = pytest.mark.long

P = Privilege
COMBINATIONS = (
    *(frozenset({p}) for p in P),
    *(frozenset({p, P.READ}) for p in P if P.READ not in IMPLIED[p]),
    frozenset({P.DROP, P.CREATE}),
    frozenset({P.DROP, P.READ, P.CREATE}),
)
"""What callers hold on the namespace, and nothing else."""
ANY = ({P.LIST},)
ADMINISTRATORS: tuple[set[Privilege], ...] = ()
"""Of the catalog, which nobody is in the matrix."""
OUTSIDE = ("nobody", "elsewhere")


def caller_of(held: frozenset[Privilege]) -> str:
    return "has-" + "-".join(sorted(held))


class World(NamedTuple):
    """A namespace below `top` with a table of two branches, one without, a view, and a table in the trash."""

    ns: str
    metadata: str
    """A file of a table that nobody has."""
    other_metadata: str
    view_metadata: str
    grant: int
    pull_request: int
    """Of a branch of the table that has two."""

    @property
    def at(self) -> str:
        return f"/v1/namespaces/top%1F{self.ns}"

    @property
    def table(self) -> str:
        return f"{self.at}/tables/t"

    @property
    def view(self) -> str:
        return f"{self.at}/views/v"

    def name(self, name: str) -> dict[str, Any]:
        return {"namespace": ["top", self.ns], "name": name}


class Ask(NamedTuple):
    """A request, and the sets of privileges on the namespace of which one is enough."""

    enough: tuple[set[Privilege], ...]
    path: Callable[[World], str]
    body: Callable[[World], Any] = lambda _: None
    query: dict[str, str] | None = None
    hidden: bool = True
    """Whether those who hold nothing are told that there is nothing."""


def commit(*updates: Any, enough: tuple[set[Privilege], ...], requirements: tuple[Any, ...] = ()) -> Ask:
    body = {"requirements": list(requirements), "updates": list(updates)}
    return Ask(enough, lambda w: w.table, lambda _: body)


def new_table() -> list[Any]:
    return [
        {"action": "assign-uuid", "uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1"},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": SCHEMA, "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]


def staged(world: World) -> dict[str, Any]:
    location = {"action": "set-location", "location": world.metadata.rpartition("/metadata/")[0] + "-new"}
    return {"requirements": [{"type": "assert-create"}], "updates": [*new_table(), location]}


def view(name: str) -> dict[str, Any]:
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
    }
    return {"name": name, "schema": SCHEMA, "view-version": version, "properties": {}}


def drop_ref(name: str) -> dict[str, str]:
    return {"action": "remove-snapshot-ref", "ref-name": name}


def set_tag(name: str, snapshot_id: int) -> dict[str, Any]:
    return {"action": "set-snapshot-ref", "ref-name": name, "type": "tag", "snapshot-id": snapshot_id}


WRITE, MANAGE, PUBLISH = ({P.WRITE},), ({P.MANAGE_REFS, P.READ},), ({P.WRITE}, {P.PUBLISH, P.READ})
READ, DROP, CREATE = ({P.READ},), ({P.DROP},), ({P.CREATE},)
BOTH, MOVE, REVIEW = ({P.DROP, P.CREATE},), ({P.DROP, P.READ, P.CREATE},), ({P.PUBLISH, P.READ},)


def of_pull_request(path: str, enough: tuple[set[Privilege], ...], body: Any = None) -> Ask:
    return Ask(enough, lambda w: f"/bergline/v1/pull-requests/{w.pull_request}{path}", lambda _: body)


ASKS: dict[str, tuple[Ask, ...]] = {
    "get_config": (Ask(ANY, lambda _: "/v1/config", hidden=False),),
    "list_namespaces": (
        Ask(ANY, lambda _: "/v1/namespaces", hidden=False),
        Ask(ANY, lambda w: f"/v1/namespaces?parent=top\x1f{w.ns}"),
    ),
    "create_namespace": (Ask(CREATE, lambda _: "/v1/namespaces", lambda w: {"namespace": ["top", w.ns, "more"]}),),
    "load_namespace": (Ask(ANY, lambda w: w.at),),
    "namespace_exists": (Ask(ANY, lambda w: w.at),),
    "drop_namespace": (Ask(DROP, lambda w: f"{w.at}%1Fempty"),),
    "update_namespace": (
        Ask(WRITE, lambda w: f"{w.at}/properties", lambda _: {"updates": {"a": "b"}, "removals": []}),
    ),
    "list_tables": (Ask(ANY, lambda w: f"{w.at}/tables"),),
    "create_table": (
        Ask(CREATE, lambda w: f"{w.at}/tables", lambda _: {"name": "n", "schema": SCHEMA}),
        Ask(
            CREATE,
            lambda w: f"{w.at}/tables",
            lambda _: {"name": "n", "schema": SCHEMA, "stage-create": True},
        ),
    ),
    "load_table": (Ask(READ, lambda w: w.table),),
    "table_exists": (Ask(ANY, lambda w: w.table),),
    "commit_table": (
        commit(snapshot(9, 9, 2), set_branch("main", 9), enough=WRITE),
        commit(set_branch("main", 3), enough=PUBLISH),
        commit(set_branch("main", 1), enough=MANAGE),
        commit(set_branch("new", 1), enough=MANAGE),
        commit(snapshot(9, 9, 2), set_branch("new", 9), enough=({P.WRITE, P.MANAGE_REFS},)),
        commit(drop_ref("dev"), enough=MANAGE),
        commit(drop_ref("dev"), set_branch("main", 3), enough=({P.WRITE, P.MANAGE_REFS}, {P.PUBLISH, P.MANAGE_REFS})),
        commit(set_tag("v2", 2), enough=MANAGE),
        commit({**set_branch("dev", 3), "min-snapshots-to-keep": 5}, enough=MANAGE),
        commit(set_property("a", "b"), enough=WRITE),
        commit(set_property("a", "b"), set_branch("main", 3), enough=WRITE),
        commit(snapshot(9, 9, 2), enough=WRITE),
        commit(snapshot(9, 9, 2), set_branch("main", 3), enough=WRITE),
        commit({"action": "remove-snapshots", "snapshot-ids": [4]}, enough=WRITE),
        commit(enough=READ),
        Ask(CREATE, lambda w: f"{w.at}/tables/n", staged),
    ),
    "drop_table": (Ask(DROP, lambda w: w.table), Ask(DROP, lambda w: w.table, query={"purgeRequested": "true"})),
    "register_table": (
        Ask(
            CREATE,
            lambda w: f"{w.at}/register",
            lambda w: {"name": "n", "metadata-location": w.metadata},
        ),
        Ask(
            BOTH,
            lambda w: f"{w.at}/register",
            lambda w: {"name": "t", "metadata-location": w.other_metadata, "overwrite": True},
        ),
    ),
    "unregister_table": (Ask(({P.DROP, P.READ},), lambda w: f"{w.table}/unregister"),),
    "rename_table": (
        Ask(MOVE, lambda _: "/v1/tables/rename", lambda w: {"source": w.name("t"), "destination": w.name("n")}),
    ),
    "load_credentials": (Ask(READ, lambda w: f"{w.table}/credentials"),),
    "report_metrics": (Ask(READ, lambda w: f"{w.table}/metrics", lambda _: {"report-type": "scan-report"}),),
    "plan_table_scan": (Ask(READ, lambda w: f"{w.at}/tables/bare/plan", lambda _: {}),),
    "fetch_planning_result": (Ask(READ, lambda w: f"{w.table}/plan/unknown"),),
    "cancel_planning": (Ask(READ, lambda w: f"{w.table}/plan/unknown"),),
    "fetch_scan_tasks": (Ask(READ, lambda w: f"{w.table}/tasks", lambda _: {"plan-task": "unknown"}),),
    "commit_transaction": (
        Ask(
            WRITE,
            lambda _: "/v1/transactions/commit",
            lambda w: {
                "table-changes": [
                    {"identifier": w.name(name), "requirements": [], "updates": [set_property("a", "b")]}
                    for name in ("t", "bare")
                ]
            },
        ),
    ),
    "list_views": (Ask(ANY, lambda w: f"{w.at}/views"),),
    "create_view": (Ask(CREATE, lambda w: f"{w.at}/views", lambda _: view("n")),),
    "load_view": (Ask(READ, lambda w: w.view),),
    "view_exists": (Ask(ANY, lambda w: w.view),),
    "commit_view": (Ask(WRITE, lambda w: w.view, lambda _: {"requirements": [], "updates": [set_property("a", "b")]}),),
    "drop_view": (Ask(DROP, lambda w: w.view),),
    "register_view": (
        Ask(
            CREATE,
            lambda w: f"{w.at}/register-view",
            lambda w: {"name": "n", "metadata-location": w.view_metadata},
        ),
    ),
    "rename_view": (
        Ask(MOVE, lambda _: "/v1/views/rename", lambda w: {"source": w.name("v"), "destination": w.name("n")}),
    ),
    "list_dropped_tables": (Ask(ANY, lambda _: "/bergline/v1/dropped-tables", hidden=False),),
    "undrop_table": (Ask(MOVE, lambda w: f"/bergline{w.at}/tables/gone/undrop", lambda _: {}),),
    "list_dropped_views": (Ask(ANY, lambda _: "/bergline/v1/dropped-views", hidden=False),),
    "undrop_view": (Ask(MOVE, lambda w: f"/bergline{w.at}/views/gone/undrop", lambda _: {}),),
    "sign_request": (
        Ask(READ, lambda w: f"{w.table}/sign", lambda _: {}),
        Ask(CREATE, lambda w: f"{w.at}/tables/new/sign?staged=0", lambda _: {}),
    ),
    "list_events": (
        Ask(ADMINISTRATORS, lambda _: "/bergline/v1/events", hidden=False),
        Ask(ADMINISTRATORS, lambda _: "/bergline/v1/events?subject=table/*", hidden=False),
        Ask(READ, lambda w: f"/bergline/v1/events?subject=table/top.{w.ns}/t"),
    ),
    "list_ref_rules": (Ask(ANY, lambda _: "/bergline/v1/rules", hidden=False),),
    "list_namespace_ref_rules": (Ask(ANY, lambda w: f"/bergline{w.at}/rules"),),
    "take_turn": (Ask(WRITE, lambda w: f"/bergline{w.table}/turn", lambda _: {"holder": "me", "lease-ms": 1}),),
    "give_back_turn": (Ask(WRITE, lambda w: f"/bergline{w.table}/turn", query={"holder": "me"}),),
    "report_snapshot_check": (Ask(REVIEW, lambda w: f"/bergline{w.table}/snapshots/2/checks", lambda _: {}),),
    "approve_snapshot": (Ask(REVIEW, lambda w: f"/bergline{w.table}/snapshots/2/approvals", lambda _: {}),),
    "list_lake_branches": (Ask(ANY, lambda _: "/bergline/v1/lake-branches", hidden=False),),
    "create_lake_branch": (),  # these are in tests/unit/server/handlers/governance/test_lake_branches.py
    "load_lake_branch": (),
    "drop_lake_branch": (),
    "list_pull_requests": (Ask(ANY, lambda _: "/bergline/v1/pull-requests", hidden=False),),
    "open_pull_request": (
        Ask(
            READ,
            lambda _: "/bergline/v1/pull-requests",
            lambda w: {"title": "more", "branch": "dev", "tables": [w.name("t")]},
        ),
    ),
    "load_pull_request": (of_pull_request("", READ),),
    "edit_pull_request": (of_pull_request("", PUBLISH, {"title": "all"}),),
    "comment_pull_request": (of_pull_request("/comments", READ, {"text": "good"}),),
    "approve_pull_request": (of_pull_request("/approve", PUBLISH, {"heads": []}),),
    "withdraw_pull_request": (of_pull_request("/withdraw", READ),),
    "check_pull_request": (of_pull_request("/checks", PUBLISH, {"name": "nulls", "state": "passed"}),),
    "publish_pull_request": (of_pull_request("/publish", READ, {"heads": []}),),
    "close_pull_request": (of_pull_request("/close", PUBLISH),),
    "reopen_pull_request": (of_pull_request("/reopen", PUBLISH),),
    "list_grants": (Ask(ANY, lambda _: "/bergline/v1/grants", hidden=False),),
    "create_grants": (
        Ask(
            ({P.ADMINISTER},),
            lambda _: "/bergline/v1/grants",
            lambda w: {
                "grants": [{"privilege": "read", "on": {"kind": "table", **w.name("t")}, "to": f"group:new-{w.ns}"}]
            },
        ),
    ),
    "revoke_grant": (Ask(({P.ADMINISTER},), lambda w: f"/bergline/v1/grants/{w.grant}"),),
    "list_owners": (Ask(ANY, lambda _: "/bergline/v1/owners", hidden=False),),
    "set_owner": (
        Ask(
            ({P.ADMINISTER},),
            lambda _: "/bergline/v1/owners",
            lambda w: {"on": {"kind": "table", **w.name("t")}, "owner": "zoe"},
        ),
    ),
}
"""Endpoints that are not here need one privilege on one thing, as their row says."""


class Server:
    """A server with callers, and fresh worlds for what changes them."""

    def __init__(self, context: ServerContext) -> None:
        self.context = context
        self.callers = ["root", "owner", *OUTSIDE, *map(caller_of, COMBINATIONS)]
        for name in self.callers:
            context.records.tokens.create(name, f"bl_{name}", 1, None)
        context.authenticator = Authenticator(context.records)
        self.direct = SqlGrants(context.records.database, context.records.catalog_name)
        spare = [make_grants("list", "namespace top", f"group:{number}")[0] for number in range(10)]
        held = [one for held in COMBINATIONS for one in make_grants(held, "namespace top", caller_of(held))]
        elsewhere = make_grants("administer", "namespace elsewhere", "elsewhere")
        self.direct.grant([*make_grants("administer", "catalog", "root"), *elsewhere, *held, *spare])
        self.spare = [number for number, grant in self.direct.numbered_grants().items() if grant in spare]
        self.client = AsgiClient(context)
        self.numbers = count()
        self._make_templates()

    def _make_templates(self) -> None:
        self("root", "POST", "/v1/namespaces", {"namespace": ["top"]})
        self.direct.set_owner(namespace_of(("top",)), principal("owner"))
        for name in ("t", "bare", "loose", "over"):
            self("root", "POST", "/v1/namespaces/top/tables", {"name": name, "schema": SCHEMA})
        for name in ("v", "loose-view"):
            self("root", "POST", "/v1/namespaces/top/views", view(name))
        heads = [snapshot(1, 1), snapshot(2, 2, 1), snapshot(3, 3, 2), snapshot(4, 4, 2)]
        updates = with_lists(
            self.context, TableName(("top",), "t"), [*heads, set_branch("main", 2), set_branch("dev", 3)]
        )
        body = {"requirements": [], "updates": updates}
        assert self("root", "POST", "/v1/namespaces/top/tables/t", body).status == 200
        self.uuid = self("root", "GET", "/v1/namespaces/top/tables/t").json["metadata"]["table-uuid"]
        store = self.context.store
        assert store.views is not None
        found = {name: store.read(TableName(("top",), name)) for name in ("t", "bare", "loose", "over")}
        views = {name: store.views.read(TableName(("top",), name)) for name in ("v", "loose-view")}
        self.templates = {name: location or "" for name, location in (found | views).items()}
        for name in ("loose", "over"):
            store.drop(TableName(("top",), name))
        store.views.drop(TableName(("top",), "loose-view"))

    def __call__(self, who: str, method: str, path: str, body: Any = None, **more: Any) -> AsgiResponse:
        path, _, query = path.partition("?")
        asked = dict([query.split("=")]) if query else more.pop("query", None)
        of_table = re.fullmatch(r"/v1/namespaces/top(?:%1F)?(\w*)/tables/t", path)
        if of_table and body and "updates" in body:
            name = TableName(tuple(filter(None, ("top", of_table[1]))), "t")
            body |= {"updates": with_lists(self.context, name, body["updates"])}
        return self.client(method, path, body, query=asked, headers=bearer(f"bl_{who}"))

    def world(self) -> World:
        number = next(self.numbers)
        ns, store = f"n{number}", self.context.store
        of = {"catalog_name": store.catalog_name}
        kinds = {"t": "TABLE", "bare": "TABLE", "v": "VIEW"}
        rows = [
            {**of, "table_namespace": f"top.{ns}", "table_name": name, "iceberg_type": kind}
            | {"metadata_location": self.templates[name]}
            for name, kind in kinds.items()
        ]
        made = {**of, "property_key": "exists", "property_value": "true"}
        with store.database.changing() as connection:
            connection.execute(sa.insert(TABLES), rows)
            connection.execute(
                sa.insert(NAMESPACES), [made | {"namespace": n} for n in (f"top.{ns}", f"top.{ns}.empty")]
            )
            gone = TableName(("top", ns), "gone")
            store.table_trash.add(
                connection, DroppedTable(gone, self.templates["bare"], 1, 2**60, "ann", purges_files=False)
            )
            record = PullRequestRecord(
                10_000 - number,
                "more",
                "ann",
                f"dev-{ns}",
                "main",
                (ProposedTable(TableName(("top", ns), "t"), self.uuid),),
                1,
                1,
            )
            texts = {"tables": msgspec.json.encode(record.tables).decode(), "published": "[]"}
            connection.execute(sa.insert(PULL_REQUESTS), of | msgspec.structs.asdict(record) | texts)
        loose = (self._copied(name, ns) for name in ("loose", "over", "loose-view"))
        return World(ns, *loose, self.spare[number % len(self.spare)], 10_000 - number)

    def _copied(self, name: str, ns: str) -> str:
        """The metadata file of a template, moved into the directory of a namespace."""
        location = self.templates[name]
        copy = location.replace("/top/", f"/top/{ns}/")
        data = local_file(location).read_bytes()
        is_packed = data.startswith(b"\x1f\x8b")
        data = (gzip.decompress(data) if is_packed else data).replace(b"/top/", f"/top/{ns}/".encode())
        local_file(copy).parent.mkdir(parents=True)
        local_file(copy).write_bytes(gzip.compress(data) if is_packed else data)
        return copy


def local_file(location: str) -> Path:
    return Path(location.removeprefix("file://"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("matrix")
    context = open_server(f"sqlite:///{home}/lake/catalog.db", limits=ServerSettings(drop_retention_s=3600))
    made = Server(context)
    yield made
    made.client.application.close()
    context.catalog.close()


def asks_of(endpoint: Endpoint) -> tuple[Ask, ...]:
    if endpoint.name in ASKS:
        return ASKS[endpoint.name]
    found = re.fullmatch(r"`([\w-]+)` on the (\w+)", ENDPOINT_ACCESS[endpoint.name].described)
    assert found, f"`{endpoint.name}` needs more than one privilege: add how it is asked to ASKS"
    on_catalog = found[2] == "catalog"

    def path(world: World) -> str:
        named = {"namespace": f"top%1F{world.ns}", "table": "t", "view": "v"}
        names = {name: named.get(name, "1") for name in re.findall(r"{(\w+)}", endpoint.path) if name != "prefix"}
        return endpoint.url(**names)

    enough = ADMINISTRATORS if on_catalog else ({P(found[1])},)
    return (Ask(enough, path, lambda _: None if endpoint.body is None else {}, hidden=not on_catalog),)


def expand(held: frozenset[Privilege]) -> frozenset[Privilege]:
    return frozenset().union(*(IMPLIED[one] for one in held))


def test_every_endpoint_has_a_row() -> None:
    assert {endpoint.name for endpoint in ENDPOINTS} == ENDPOINT_ACCESS.keys()


CASES = [
    pytest.param(endpoint, number, id=f"{endpoint.name}-{number}")
    for endpoint in ENDPOINTS
    if endpoint.name != "get_token" and endpoint.name in ENDPOINT_ACCESS
    for number in range(len(asks_of(endpoint)))
]


@pytest.mark.parametrize(("endpoint", "number"), CASES)
def test_endpoint_is_for_those_with_the_privilege_and_refused_to_others(
    server: Server, endpoint: Endpoint, number: int
) -> None:
    ask = asks_of(endpoint)[number]
    world = server.world()

    def asked(who: str, where: World) -> AsgiResponse:
        return server(who, endpoint.method, ask.path(where), ask.body(where), query=ask.query)

    may = [caller_of(held) for held in COMBINATIONS if any(one <= expand(held) for one in ask.enough)]
    readers = [caller_of(held) for held in COMBINATIONS if P.READ in expand(held)]
    if ask.enough:
        may.append("owner")
    for who in server.callers:
        if who in may or who == "root" or (who in OUTSIDE and not ask.hidden and ask.enough):
            continue
        response = asked(who, world)
        is_hidden = (who in OUTSIDE and ask.hidden) or endpoint.name == "revoke_grant"
        is_hidden |= "{number}" in endpoint.path and who not in readers
        assert response.status == (404 if is_hidden else 403), (who, response)
        if endpoint.method != "HEAD" and not is_hidden:
            assert "expected the privilege" in response.message, (who, response)
    changes = endpoint.method in {"POST", "DELETE"}
    exact = [caller_of(frozenset(one)) for one in ask.enough if frozenset(one) in COMBINATIONS]
    for who in (*dict.fromkeys((*exact, "has-administer", "owner") if ask.enough else ()), "root"):
        response = asked(who, server.world() if changes else world)
        assert not is_refused(endpoint, response), (who, response)
    for who in OUTSIDE if not ask.hidden and ask.enough else ():
        assert asked(who, world).status == endpoint.status


def is_refused(endpoint: Endpoint, response: AsgiResponse) -> bool:
    if response.status == 403:
        return True
    missing = b"no pull request" if "{number}" in endpoint.path else b"does not exist"
    return response.status == 404 and missing in response.body


def test_answer_for_what_is_hidden_is_that_for_what_does_not_exist(server: Server) -> None:
    world = server.world()
    missing = world._replace(ns="missing")
    for endpoint in ENDPOINTS:
        for ask in asks_of(endpoint) if endpoint.name != "get_token" else ():
            if not ask.hidden or endpoint.name == "revoke_grant":
                continue
            hidden, absent = (
                server("nobody", endpoint.method, ask.path(w), ask.body(w), query=ask.query) for w in (world, missing)
            )
            assert hidden.status == absent.status == 404, endpoint.name
            assert hidden.body.replace(world.ns.encode(), b"missing") == absent.body, endpoint.name


def test_grants_of_a_table_are_no_grants_of_its_neighbours(server: Server) -> None:
    world = server.world()
    of_table = make_grants("write", f"table top.{world.ns}.t", "nobody")
    server.direct.grant(of_table)
    try:
        assert server("nobody", "GET", world.table).status == 200
        assert server("nobody", "GET", f"{world.at}/tables/bare").status == 404
        assert server("nobody", "GET", f"{world.at}/tables").json["identifiers"] == [world.name("t")]
        assert server("nobody", "GET", f"{world.at}/views").json["identifiers"] == []
        assert server("nobody", "GET", "/v1/namespaces").json["namespaces"] == [["top"]]
        assert server("nobody", "GET", world.at).json["properties"] == {}
    finally:
        server.direct.revoke(of_table)
