"""The console as an application of Starlette: pages and their `.json` twins, sign-in, and actions."""

import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.routing import Match, Router
from starlette.types import Receive, Scope, Send

from bergline.catalog.at_ref.catalog_at_ref import only_on_main
from bergline.catalog.at_ref.lake_ref import LakeRefKind
from bergline.catalog.protection.caller import acting_as
from bergline.catalog.rest.protocol.errors import row_of
from bergline.console.actions.form import Answers
from bergline.console.actions.pull_requests import PULL_REQUEST_ACTIONS, asked_pull_request
from bergline.console.actions.registry import ACTIONS
from bergline.console.actions.review import ConsoleAction
from bergline.console.host import Host
from bergline.console.links import link, links_at
from bergline.console.page import Page, Source, asked_table
from bergline.console.pages.actions import done_page, form_page, review_page
from bergline.console.pages.pull_requests import pull_request_page
from bergline.console.pages.registry import PAGES
from bergline.console.pages.trash import undrop_page
from bergline.console.rendering import Frame, Renderer, Tab, json_bytes
from bergline.errors import (
    AlreadyExistsError,
    AuthenticationError,
    BerglineError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnavailableError,
)
from bergline.format.metadata.refs import MAIN
from bergline.governance.governance import governance_of
from bergline.lake.at_ref import find_lake_ref
from bergline.server.console.issuer_sign_in import CALLBACK, START, finish_sign_in, start_sign_in
from bergline.server.console.sign_in import SignIn, check_cookie_length, is_cookie_text
from bergline.server.console.visit import Visit, is_our_address, is_twin, page_path, read_visit, redirect, twin_of
from bergline.server.http.errors import RequestRefused
from bergline.server.http.response import Response
from bergline.server.http.routes import route
from bergline.server.http.thread_pool import ThreadPool, in_time
from bergline.table.table import Table

_View = Callable[..., Response]
"""A method that responds to a visit in a thread; the parameters of its path are arguments."""
_LOG = logging.getLogger("bergline.console")
_STATIC = Path(__file__).parents[2] / "console" / "static"
_TYPES = {".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
_ACTIONS = "table/actions"
_SWITCH = "at"
_MOST_BRANCHES = 100
_PAGE_S = 120.0
_MOST_WAITING, _MOST_WAITING_FOR_ISSUERS = 64, 16
_TOO_MANY = "too many pages at once: nothing was changed, try again"
_HTML = "text/html; charset=utf-8"
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # under `no-referrer` browsers hide the origin of our own forms too
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_REVIEW_LASTS_MS = 3_600_000
_TITLES = {
    400: "That cannot be done as written",
    401: "Sign in",
    403: "Refused",
    404: "Not found",
    405: "Not allowed",
    409: "Conflict",
    503: "Not now",
}
_FAILED = 500
_NOTHING_DONE = (InvalidInputError, ConflictError, AlreadyExistsError, NotFoundError, RefusedError)
"""What certainly changed nothing: the action is reviewed again."""


class Console:
    """Routes visits to pages and actions; every page is made in a thread."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._renderer = Renderer()
        self._threads = ThreadPool("bergline-console", 4, _MOST_WAITING)
        self._issuer_threads = ThreadPool("bergline-console-issuers", 2, _MOST_WAITING_FOR_ISSUERS)
        """Who waits for an issuer keeps no page waiting."""
        self._files = {
            f"static/{path.name}": Response(
                200, path.read_bytes(), {"content-type": _TYPES[path.suffix], "cache-control": "max-age=300"}
            )
            for path in _STATIC.iterdir()
            if path.suffix in _TYPES
        }
        page, no_page = self._signed_in(self._page), self._signed_in(self._no_page)
        views: dict[str, _View] = {
            "/sign-in": self._sign_in,
            f"/{START}": self._issuer_sign_in,
            f"/{CALLBACK}": self._issuer_sign_in,
            "/sign-out": self._sign_out,
            f"/{_SWITCH}": self._signed_in(self._switch),
            f"/{_ACTIONS}/{{key:path}}": self._signed_in(self._action),
            "/pull-requests/{key:path}": self._signed_in(self._pull_request),
            "/trash/undrop": self._signed_in(self._undrop),
            **{f"/{path}": page for path in PAGES},
            **dict.fromkeys(("/lake", "/table/{_:path}", "/static/{_:path}", "/sign-in/{_:path}"), no_page),
        }
        self._router = Router(
            [route(path, self._serve, view) for path, view in views.items()],
            redirect_slashes=False,
            default=partial(self._serve, no_page),
            lifespan=self._lifespan,
        )

    def has(self, path: str) -> bool:
        """Whether a path, with its first slash, is one of the console's."""
        scope = {"type": "http", "path": f"/{page_path(path)}"}
        return any(known.matches(scope)[0] is Match.FULL for known in self._router.routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The entry point of ASGI."""
        if scope["type"] == "http":
            scope["path"] = f"/{page_path(scope['raw_path'].decode('latin-1'))}"
        await self._router(scope, receive, send)

    def close(self) -> None:
        """Finish the pages that are being made, and take no more visits."""
        self._threads.close()
        self._issuer_threads.close()

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: object) -> AsyncIterator[None]:
        yield
        self.close()

    async def _serve(self, view: _View, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what a view responds, with the headers that every response has."""
        response = await self._response(view, scope, receive)
        await msgspec.structs.replace(response, headers=_HEADERS | response.headers)(scope, receive, send)

    async def _response(self, view: _View, scope: Scope, receive: Receive) -> Response:
        visit = Visit(scope["method"], "", {}, {}, {}, wants_json=is_twin(scope["raw_path"].decode("latin-1")))
        try:
            visit = await read_visit(scope, receive)
            if (self._host.public_url or "").startswith("https://"):
                visit = msgspec.structs.replace(visit, is_secure=True)
            self._host.check_origin(visit.headers)
            if visit.is_read and visit.path in self._files:
                return self._files[visit.path]
            threads = self._issuer_threads if visit.path in {START, CALLBACK} else self._threads
            return await in_time(threads.start(self._shown, view, visit, scope.get("path_params", {})), _PAGE_S)
        except BerglineError as error:
            return self._error(visit, error)
        except RequestRefused:
            return self._error_page(visit, 503, _TOO_MANY, [])
        except TimeoutError:
            if visit.is_read:
                return self._error_page(visit, 503, "the page took too long", ["try again"])
            return self._error_page(
                visit, 504, "the change took too long, and may still happen", ["look what became of it"]
            )

    def _shown(self, view: _View, visit: Visit, names: dict[str, str]) -> Response:
        """What a view responds, made in a thread."""
        try:
            sign_in = SignIn(visit)
            if not visit.is_read:
                if visit.method != "POST":
                    return self._wrong_method(visit, "GET, HEAD, POST")
                sign_in.check_form()
            return view(visit, sign_in, **names)
        except BerglineError as error:
            return self._error(visit, error)
        except Exception:  # noqa: BLE001  (a bug of ours: the visitor gets a page all the same)
            _LOG.exception("%s failed", visit.path)
            return self._error_page(visit, _FAILED, "the console failed; the log of the server says why", [])

    def _signed_in(self, view: _View) -> _View:
        """A view for callers whom the host lets in; others are asked to sign in."""

        def respond(visit: Visit, sign_in: SignIn, **names: str) -> Response:
            if (entered := self._entered(visit, sign_in)) is not None:
                return entered
            try:
                caller = self._host.caller(sign_in.token, visit.peer)
            except AuthenticationError:
                if visit.wants_json or not visit.is_read:
                    raise
                return redirect(link("sign-in", next=visit.address))
            visit.note_caller(caller.name)
            lake, at = self._host.lake_for(caller), None
            try:
                if visit.at is not None:
                    at = find_lake_ref(lake.catalog, visit.at.name, visit.at.kind)
            except NotFoundError as error:
                return self._error(msgspec.structs.replace(visit, at=None), error)
            seen = None if _is_at_all_refs(visit.path) else at
            source = Source(
                lake if seen is None else self._host.lake_for(caller, seen),
                time.time_ns() // 1_000_000,
                caller.name,
                may_change=at is None or (seen is not None and seen.kind is LakeRefKind.BRANCH),
                groups=caller.groups,
                read_rows=partial(self._host.read_rows, caller),
                at=seen,
            )
            return view(msgspec.structs.replace(visit, at=at), sign_in, source, **names)

        return respond

    def _page(self, visit: Visit, sign_in: SignIn, source: Source) -> Response:
        """One of the pages that only show."""
        if not visit.is_read:
            return self._wrong_method(visit, "GET, HEAD")
        return self._rendered(visit, sign_in, source, PAGES[visit.path].handler(source, visit.query))

    def _switch(self, visit: Visit, sign_in: SignIn, source: Source) -> Response:
        """To a page at the ref that the form on top of every page names."""
        if not visit.is_read:
            return self._wrong_method(visit, "GET, HEAD")
        try:
            at = find_lake_ref(source.lake.catalog, visit.query.get(_SWITCH, "").strip() or MAIN)
        except (NotFoundError, InvalidInputError) as error:
            return self._error(visit, error)
        return redirect(_here(visit) if at is None else f"/{at.in_path}{_here(visit)}")

    def _no_page(self, visit: Visit, sign_in: SignIn, source: Source, **_: str) -> Response:
        del sign_in, source
        raise NotFoundError(f"no page at `/{visit.path[:200]}`", kind="page", name=visit.path[:200], known=PAGES)

    def _entered(self, visit: Visit, sign_in: SignIn) -> Response | None:
        """For an address with a ticket: its page, with the token that the ticket stands for in a cookie."""
        ticket = visit.query.get("token") if visit.method == "GET" else None
        token = None if ticket is None else self._host.token_for(ticket)
        if token is None:
            return None
        path, query = visit.address.partition("?")[0], {k: v for k, v in visit.query.items() if k != "token"}
        to = f"{path}?{urlencode(query)}" if query else path
        return redirect(to if is_our_address(to) else "/", sign_in.token_cookie(token))

    def _sign_in(self, visit: Visit, sign_in: SignIn) -> Response:
        """The form for a token, or the token from it."""
        fields = visit.query if visit.is_read else visit.form
        after = fields.get("next", "/")
        after = after if is_our_address(after) else "/"
        if not self._host.needs_token:
            return redirect(after)
        problem, status = None, 200
        if not visit.is_read:
            token = visit.form.get("token", "").strip()
            try:
                check_cookie_length(token)
                self._host.caller(token if is_cookie_text(token) else None, visit.peer)
            except AuthenticationError as error:
                problem, status = str(error), 401
            else:
                return redirect(after, sign_in.token_cookie(token))
        return self._sign_in_page(visit, sign_in, after, problem, status)

    def _sign_in_page(
        self, visit: Visit, sign_in: SignIn, after: str, problem: str | None = None, status: int = 200
    ) -> Response:
        ways = self._host.browser_sign_in
        values = {"message": problem, "next": after, "issuers": [] if ways is None else list(ways.names)}
        return self._html(visit, sign_in, Page("Sign in", "sign_in.html", values), status=status)

    def _issuer_sign_in(self, visit: Visit, sign_in: SignIn) -> Response:
        """The way to an issuer, or the way back from it; what a browser has for one attempt counts once."""
        if visit.method != "GET":
            return self._wrong_method(visit, "GET")
        try:
            if visit.path == START:
                return start_sign_in(self._host, visit, sign_in)
            done = finish_sign_in(self._host, visit, sign_in)
        except (AuthenticationError, UnavailableError) as error:
            response = self._sign_in_page(visit, sign_in, "/", str(error), row_of(error).status)
            return _with(response, sign_in.flow_cookie(None))
        response = self._html(visit, sign_in, Page("Signed in", "signed_in.html", {"next": done.next}))
        onward = f"0; url={done.next}"  # a redirect would still count as the issuer's, and bring no cookie
        cookies = sign_in.token_cookie(done.token, done.seconds), sign_in.flow_cookie(None)
        return _with(response, *cookies, refresh=onward)

    def _sign_out(self, visit: Visit, sign_in: SignIn) -> Response:
        if visit.is_read:
            return self._wrong_method(visit, "POST")
        if self._host.browser_sign_in is not None and sign_in.token is not None:
            self._host.browser_sign_in.end(sign_in.token)
        return redirect("/", *sign_in.signed_out_cookies())

    def _action(self, visit: Visit, sign_in: SignIn, source: Source, key: str) -> Response:
        """The form of an action, its review, or what was done."""
        action = ACTIONS.get(key)
        if action is None:
            raise NotFoundError(f"no action at `/{visit.path[:200]}`", kind="page", name=visit.path[:200])
        if source.at is not None and (action.only_on_main or not source.may_change):
            why = "it is of the whole table" if source.may_change else "it is read only"
            raise RefusedError(f"cannot do `{action.key}` at {source.at}: {why}", hints=["go to the table on `main`"])
        fields = visit.query if visit.is_read else visit.form
        table = source.lake.load_table(asked_table(fields))
        if visit.is_read:
            return self._rendered(visit, sign_in, source, form_page(table, action, fields, at=source.at))
        return self._act(visit, sign_in, source, table, action)

    def _act(self, visit: Visit, sign_in: SignIn, source: Source, table: Table, action: ConsoleAction) -> Response:
        answers = Answers(action.fields, visit.form)
        confirmed = visit.form.get("confirm")
        moment_ms = _moment(visit.form.get("moment", ""), source.now_ms)

        def done() -> Page | None:
            """What was done; None if the table is not as it was reviewed."""
            fresh = source.lake.load_table(table.name)
            again = action.review(fresh, answers, moment_ms)
            if again.fingerprint != confirmed or again.nothing_to_do:
                return None
            return done_page(fresh, action, again, again.do(), at=source.at)

        stale: str | None = None
        if confirmed:
            stale = "the table changed since you reviewed this"
            try:
                page = self._host.change(source.caller, action.key, table.name, done, source.groups)
            except _NOTHING_DONE as error:
                stale = str(error)
            else:
                if page is not None:
                    return self._rendered(visit, sign_in, source, page)
        try:
            fresh = source.lake.load_table(table.name)
            with acting_as(source.caller, source.groups):
                review = action.review(fresh, answers, source.now_ms)
        except BerglineError as error:
            status = min(row_of(error).status, _FAILED)
            return self._rendered(
                visit, sign_in, source, form_page(table, action, visit.form, error, at=source.at), status
            )
        page = review_page(fresh, action, answers, review, stale=stale, at=source.at)
        return self._rendered(visit, sign_in, source, page, 409 if stale else 200)

    def _pull_request(self, visit: Visit, sign_in: SignIn, source: Source, key: str) -> Response:
        """What was asked for on the page of a pull request, which shows it again, with the reason if it was refused."""
        act = PULL_REQUEST_ACTIONS.get(key)
        if act is None:
            raise NotFoundError(f"no action at `/{visit.path[:200]}`", kind="page", name=visit.path[:200])
        if visit.is_read:
            return self._wrong_method(visit, "POST")
        number = asked_pull_request(visit.form)
        request = source.lake.pull_requests.get(number)
        try:
            self._host.change_pull_request(source.caller, key, number, lambda: act(request, visit.form), source.groups)
        except _NOTHING_DONE as error:
            return self._rendered(
                visit, sign_in, source, pull_request_page(source, number, error), row_of(error).status
            )
        return redirect(links_at(visit.at)("pull-requests", number=number))

    def _undrop(self, visit: Visit, sign_in: SignIn, source: Source) -> Response:
        """Bring a table or view back from the trash: the form, the review, or what was done."""
        if visit.at is not None:
            raise only_on_main("restore what was dropped", visit.at)
        fields = visit.query if visit.is_read else visit.form
        page, status = undrop_page(
            source, fields, partial(self._host.change, source.caller, groups=source.groups), is_read=visit.is_read
        )
        return self._rendered(visit, sign_in, source, page, status)

    def _rendered(self, visit: Visit, sign_in: SignIn, source: Source, page: Page, status: int = 200) -> Response:
        """A page, or its twin."""
        if visit.wants_json:
            return Response(status, json_bytes(page.values))
        return self._html(visit, sign_in, page, source, status)

    def _html(
        self, visit: Visit, sign_in: SignIn, page: Page, source: Source | None = None, status: int = 200
    ) -> Response:
        frame = Frame(
            self._host.lake.name,
            visit.path,
            "" if source is None else source.caller,
            signed_in=source is not None and self._host.needs_token,
            may_change=source is not None and source.may_change,
            csrf=sign_in.csrf,
            tabs=() if source is None else _tabs(visit),
            twin=_twin(visit) if source is not None and visit.is_read else None,
            now_ms=time.time_ns() // 1_000_000,
            at=visit.at,
            is_at_all_refs=_is_at_all_refs(visit.path),
            here=_here(visit),
            branches=() if source is None else _lake_branches(source),
        )
        body = self._renderer.html(page, frame).encode(errors="replace")
        return Response(status, body, {"content-type": _HTML}, cookies=sign_in.form_cookies())

    def _error(self, visit: Visit, error: BerglineError) -> Response:
        return self._error_page(visit, row_of(error).status, str(error), list(error.hints))

    def _error_page(self, visit: Visit, status: int, message: str, hints: list[str]) -> Response:
        values: dict[str, Any] = {"status": status, "message": message, "hints": hints}
        if visit.wants_json:
            return Response(status, json_bytes({"error": values}))
        title = _TITLES.get(status, _TITLES[400] if status < _FAILED else "Something went wrong")
        return self._html(visit, SignIn(visit), Page(title, "error.html", values), status=status)

    def _wrong_method(self, visit: Visit, allowed: str) -> Response:
        response = self._error_page(visit, 405, f"expected one of {allowed}, found {visit.method[:20]}", [])
        return _with(response, allow=allowed)


def _with(response: Response, *cookies: str, **headers: str) -> Response:
    return msgspec.structs.replace(response, headers=response.headers | headers, cookies=(*response.cookies, *cookies))


def _is_at_all_refs(path: str) -> bool:
    """Whether a page is of the lake or table as a whole."""
    return PAGES[path].is_at_all_refs if path in PAGES else not path.startswith("table/")


def _here(visit: Visit) -> str:
    """The address on `main` of what is shown, or of the page from which the ref is switched."""
    named = visit.form.get("name")
    if visit.is_read:
        address = visit.query.get("page", "/") if visit.path == _SWITCH else visit.main_address
    else:
        address = link(visit.path, named) if named and visit.path.startswith(_ACTIONS) else link("")
    return address if is_our_address(address) else link("")


def _lake_branches(source: Source) -> tuple[str, ...]:
    """The first branches of the lake, where its catalog keeps some."""
    try:
        kept = governance_of(source.lake.catalog).lake_branches
        return () if kept is None else tuple(branch.name for branch in kept.all()[:_MOST_BRANCHES])
    except BerglineError:
        return ()


def _tabs(visit: Visit) -> tuple[Tab, ...]:
    """The pages of the table that a visit is about."""
    name = (visit.query if visit.is_read else visit.form).get("name")
    if not name or not f"{visit.path}/".startswith("table/"):
        return ()
    near = _ACTIONS if visit.path.startswith(_ACTIONS) else visit.path
    links = links_at(visit.at)
    tabs = [Tab(entry.tab, links(path, name), path == near) for path, entry in PAGES.items() if entry.tab]
    return (*tabs, Tab("Audit", links("audit", name), False))


def _twin(visit: Visit) -> str:
    _, mark, query = visit.address.partition("?")
    return f"{links_at(visit.at)(twin_of(visit.path))}{mark}{query}"


def _moment(text: str, now_ms: int) -> int:
    """The moment of a review that is being confirmed; now, if it is none or too old."""
    moment = int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else now_ms  # noqa: PLR2004
    return moment if now_ms - _REVIEW_LASTS_MS <= moment <= now_ms else now_ms
