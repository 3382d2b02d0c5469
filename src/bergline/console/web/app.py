"""The console as an ASGI application: pages and their `.json` twins, sign-in, and actions."""

import logging
import time
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.types import Receive, Scope, Send

from bergline.catalog.protection.caller import acting_as
from bergline.catalog.rest.protocol.errors import row_of
from bergline.console.actions.form import Answers
from bergline.console.actions.pull_requests import PULL_REQUEST_ACTIONS, asked_pull_request
from bergline.console.actions.registry import ACTIONS
from bergline.console.actions.review import ConsoleAction
from bergline.console.host import Host
from bergline.console.links import link
from bergline.console.page import Page, Source, asked_table
from bergline.console.pages.actions import done_page, form_page, review_page
from bergline.console.pages.pull_requests import pull_request_page
from bergline.console.pages.registry import PAGES
from bergline.console.pages.trash import undrop_page
from bergline.console.web.issuer_sign_in import CALLBACK, START, finish_sign_in, start_sign_in
from bergline.console.web.rendering import Frame, Renderer, Tab, json_bytes
from bergline.console.web.sign_in import SignIn, check_cookie_length, is_cookie_text
from bergline.console.web.threads import PageThreads
from bergline.console.web.visit import (
    JSON_TYPE,
    Reply,
    Visit,
    asks_for_json,
    is_our_address,
    read_visit,
    redirect,
    twin_of,
)
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
from bergline.table.table import Table

_LOG = logging.getLogger("bergline.console")
_STATIC = Path(__file__).parents[1] / "static"
_TYPES = {".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
_ACTIONS = "table/actions/"
_TABLE = "table"
_PULL_REQUESTS = "pull-requests/"
_UNDROP = "bin/undrop"
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
        self._threads = PageThreads()
        self._issuer_threads = PageThreads(2, 16)  # who waits for an issuer keeps no page waiting
        self._files = {
            f"static/{path.name}": Reply(
                200, path.read_bytes(), _TYPES[path.suffix], (("cache-control", "max-age=300"),)
            )
            for path in _STATIC.iterdir()
            if path.suffix in _TYPES
        }

    def has(self, path: str) -> bool:
        """Whether a path, with its first slash, is one of the console's."""
        inside = path.removeprefix("/")
        return inside.removesuffix(".json") in {
            "",
            "lake",
            "sign-in",
            "sign-out",
            _TABLE,
            _UNDROP,
            *PAGES,
        } or inside.startswith(("table/", "static/", "sign-in/", _PULL_REQUESTS))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The entry point of ASGI."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self.respond(scope, receive, send)

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> int:
        """Respond to a request; the status."""
        reply = await self._reply(scope, receive)
        body = b"" if scope["method"] == "HEAD" else reply.body
        await send({"type": "http.response.start", "status": reply.status, "headers": reply.encoded_headers()})
        await send({"type": "http.response.body", "body": body})
        return reply.status

    def close(self) -> None:
        """Finish the pages that are being made, and take no more visits."""
        self._threads.close()
        self._issuer_threads.close()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                self.close()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _reply(self, scope: Scope, receive: Receive) -> Reply:
        visit = Visit(scope["method"], "", {}, {}, {}, wants_json=asks_for_json(scope))
        try:
            visit = await read_visit(scope, receive)
            if (self._host.public_url or "").startswith("https://"):
                visit = msgspec.structs.replace(visit, is_secure=True)
            self._host.check_origin(visit.headers)
            if visit.is_read and visit.path in self._files:
                return self._files[visit.path]
            threads = self._issuer_threads if visit.path in {START, CALLBACK} else self._threads
            return await threads.run(partial(self._answer, visit))
        except BerglineError as error:
            return self._error(visit, error)
        except TimeoutError:
            if visit.is_read:
                return self._error_page(visit, 503, "the page took too long", ["try again"])
            return self._error_page(
                visit, 504, "the change took too long, and may still happen", ["look what became of it"]
            )

    def _answer(self, visit: Visit) -> Reply:
        """The response to a visit, made in a thread."""
        try:
            return self._route(visit)
        except BerglineError as error:
            return self._error(visit, error)
        except Exception:  # noqa: BLE001  (a bug of ours: the visitor gets a page all the same)
            _LOG.exception("%s failed", visit.path)
            return self._error_page(visit, _FAILED, "the console failed; the log of the server says why", [])

    def _route(self, visit: Visit) -> Reply:
        sign_in = SignIn(visit)
        if not visit.is_read:
            if visit.method != "POST":
                return self._wrong_method(visit, "GET, HEAD, POST")
            sign_in.check_form()
        if visit.path == "sign-in":
            return self._sign_in(visit, sign_in)
        if visit.path in {START, CALLBACK}:
            return self._issuer_sign_in(visit, sign_in)
        if visit.path == "sign-out":
            return self._wrong_method(visit, "POST") if visit.is_read else self._sign_out(sign_in)
        if (entered := self._entered(visit, sign_in)) is not None:
            return entered
        try:
            caller = self._host.caller(sign_in.token, visit.peer)
        except AuthenticationError:
            if visit.wants_json or not visit.is_read:
                raise
            return redirect(link("sign-in", next=visit.address))
        visit.note_caller(caller.name)
        source = Source(
            self._host.lake_for(caller),
            time.time_ns() // 1_000_000,
            caller.name,
            may_change=True,
            groups=caller.groups,
            read_rows=partial(self._host.read_rows, caller),
        )
        if visit.path.startswith(_ACTIONS):
            return self._action(visit, sign_in, source)
        if visit.path.startswith(_PULL_REQUESTS):
            return self._pull_request(visit, sign_in, source)
        if visit.path == _UNDROP:
            return self._undrop(visit, sign_in, source)
        entry = PAGES.get(visit.path)
        if entry is None:
            raise NotFoundError(f"no page at `/{visit.path[:200]}`", kind="page", name=visit.path[:200], known=PAGES)
        if not visit.is_read:
            return self._wrong_method(visit, "GET, HEAD")
        return self._page(visit, sign_in, source, entry.handler(source, visit.query))

    def _entered(self, visit: Visit, sign_in: SignIn) -> Reply | None:
        """For an address with a ticket: its page, with the token that the ticket stands for in a cookie."""
        ticket = visit.query.get("token") if visit.method == "GET" else None
        token = None if ticket is None else self._host.token_for(ticket)
        if token is None:
            return None
        path, query = visit.address.partition("?")[0], {k: v for k, v in visit.query.items() if k != "token"}
        to = f"{path}?{urlencode(query)}" if query else path
        return redirect(to if is_our_address(to) else "/", sign_in.token_header(token))

    def _sign_in(self, visit: Visit, sign_in: SignIn) -> Reply:
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
                return redirect(after, sign_in.token_header(token))
        return self._sign_in_page(visit, sign_in, after, problem, status)

    def _sign_in_page(
        self, visit: Visit, sign_in: SignIn, after: str, problem: str | None = None, status: int = 200
    ) -> Reply:
        ways = self._host.browser_sign_in
        values = {"message": problem, "next": after, "issuers": [] if ways is None else list(ways.names)}
        return self._html(visit, sign_in, Page("Sign in", "sign_in.html", values), status=status)

    def _issuer_sign_in(self, visit: Visit, sign_in: SignIn) -> Reply:
        """The way to an issuer, or the way back from it; what a browser has for one attempt counts once."""
        if visit.method != "GET":
            return self._wrong_method(visit, "GET")
        try:
            if visit.path == START:
                return start_sign_in(self._host, visit, sign_in)
            done = finish_sign_in(self._host, visit, sign_in)
        except (AuthenticationError, UnavailableError) as error:
            reply = self._sign_in_page(visit, sign_in, "/", str(error), row_of(error).status)
            return _with_headers(reply, sign_in.flow_header(None))
        reply = self._html(visit, sign_in, Page("Signed in", "signed_in.html", {"next": done.next}))
        onward = "refresh", f"0; url={done.next}"  # a redirect would still count as the issuer's, and bring no cookie
        return _with_headers(reply, onward, sign_in.token_header(done.token, done.seconds), sign_in.flow_header(None))

    def _sign_out(self, sign_in: SignIn) -> Reply:
        if self._host.browser_sign_in is not None and sign_in.token is not None:
            self._host.browser_sign_in.end(sign_in.token)
        return redirect("/", *sign_in.sign_out_headers())

    def _action(self, visit: Visit, sign_in: SignIn, source: Source) -> Reply:
        """The form of an action, its review, or what was done."""
        action = ACTIONS.get(visit.path.removeprefix(_ACTIONS))
        if action is None:
            raise NotFoundError(f"no action at `/{visit.path[:200]}`", kind="page", name=visit.path[:200])
        fields = visit.query if visit.is_read else visit.form
        table = source.lake.load_table(asked_table(fields))
        if visit.is_read:
            return self._page(visit, sign_in, source, form_page(table, action, fields))
        return self._act(visit, sign_in, source, table, action)

    def _act(self, visit: Visit, sign_in: SignIn, source: Source, table: Table, action: ConsoleAction) -> Reply:
        answers = Answers(action.fields, visit.form)
        confirmed = visit.form.get("confirm")
        moment_ms = _moment(visit.form.get("moment", ""), source.now_ms)

        def done() -> Page | None:
            """What was done; None if the table is not as it was reviewed."""
            fresh = source.lake.load_table(table.name)
            again = action.review(fresh, answers, moment_ms)
            if again.fingerprint != confirmed or again.nothing_to_do:
                return None
            return done_page(fresh, action, again, again.do())

        stale: str | None = None
        if confirmed:
            stale = "the table changed since you reviewed this"
            try:
                page = self._host.change(source.caller, action.key, table.name, done, source.groups)
            except _NOTHING_DONE as error:
                stale = str(error)
            else:
                if page is not None:
                    return self._page(visit, sign_in, source, page)
        try:
            fresh = source.lake.load_table(table.name)
            with acting_as(source.caller, source.groups):
                review = action.review(fresh, answers, source.now_ms)
        except BerglineError as error:
            status = min(row_of(error).status, _FAILED)
            return self._page(visit, sign_in, source, form_page(table, action, visit.form, error), status)
        page = review_page(fresh, action, answers, review, stale=stale)
        return self._page(visit, sign_in, source, page, 409 if stale else 200)

    def _pull_request(self, visit: Visit, sign_in: SignIn, source: Source) -> Reply:
        """What was asked for on the page of a pull request, which shows it again, with the reason if it was refused."""
        key = visit.path.removeprefix(_PULL_REQUESTS)
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
            return self._page(visit, sign_in, source, pull_request_page(source, number, error), row_of(error).status)
        return redirect(link("pull-requests", number=number))

    def _undrop(self, visit: Visit, sign_in: SignIn, source: Source) -> Reply:
        """Bring a table or view back from the trash: the form, the review, or what was done."""
        fields = visit.query if visit.is_read else visit.form
        page, status = undrop_page(
            source, fields, partial(self._host.change, source.caller, groups=source.groups), is_read=visit.is_read
        )
        return self._page(visit, sign_in, source, page, status)

    def _page(self, visit: Visit, sign_in: SignIn, source: Source, page: Page, status: int = 200) -> Reply:
        """A page, or its twin."""
        if visit.wants_json:
            return Reply(status, json_bytes(page.values), JSON_TYPE)
        return self._html(visit, sign_in, page, source, status)

    def _html(
        self, visit: Visit, sign_in: SignIn, page: Page, source: Source | None = None, status: int = 200
    ) -> Reply:
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
        )
        return Reply(status, self._renderer.html(page, frame).encode(errors="replace"), headers=sign_in.nonce_header())

    def _error(self, visit: Visit, error: BerglineError) -> Reply:
        status = 401 if isinstance(error, AuthenticationError) else row_of(error).status
        return self._error_page(visit, status, str(error), list(error.hints))

    def _error_page(self, visit: Visit, status: int, message: str, hints: list[str]) -> Reply:
        values: dict[str, Any] = {"status": status, "message": message, "hints": hints}
        if visit.wants_json:
            return Reply(status, json_bytes({"error": values}), JSON_TYPE)
        title = _TITLES.get(status, _TITLES[400] if status < _FAILED else "Something went wrong")
        return self._html(visit, SignIn(visit), Page(title, "error.html", values), status=status)

    def _wrong_method(self, visit: Visit, allowed: str) -> Reply:
        reply = self._error_page(visit, 405, f"expected one of {allowed}, found {visit.method[:20]}", [])
        return _with_headers(reply, ("allow", allowed))


def _with_headers(reply: Reply, *headers: tuple[str, str]) -> Reply:
    return msgspec.structs.replace(reply, headers=(*reply.headers, *headers))


def _tabs(visit: Visit) -> tuple[Tab, ...]:
    """The pages of the table that a visit is about."""
    name = (visit.query if visit.is_read else visit.form).get("name")
    if not name or not f"{visit.path}/".startswith("table/"):
        return ()
    near = "table/actions" if visit.path.startswith(_ACTIONS) else visit.path
    tabs = [Tab(entry.tab, link(path, name), path == near) for path, entry in PAGES.items() if entry.tab]
    return (*tabs, Tab("Audit", link("audit", name), False))


def _twin(visit: Visit) -> str:
    _, mark, query = visit.address.partition("?")
    return f"{link(twin_of(visit.path))}{mark}{query}"


def _moment(text: str, now_ms: int) -> int:
    """The moment of a review that is being confirmed; now, if it is none or too old."""
    moment = int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else now_ms  # noqa: PLR2004
    return moment if now_ms - _REVIEW_LASTS_MS <= moment <= now_ms else now_ms
