"""The threads of requests: a pool of its own for each kind that may take long, so that others need not wait."""

from typing import Final

from bergline.catalog.rest.protocol.endpoints import (
    CREATE_VIEW,
    FETCH_PLANNING_RESULT,
    FETCH_SCAN_TASKS,
    GET_TOKEN,
    PLAN_TABLE_SCAN,
)
from bergline.governance.endpoints import ENDPOINTS
from bergline.governance.pull_requests.protocol import LOAD_PULL_REQUEST
from bergline.governance.webhooks.protocol import CREATE_WEBHOOK, TEST_WEBHOOK
from bergline.server.access.authenticator import Authenticator
from bergline.server.http.request import Request
from bergline.server.http.settings import ServerSettings
from bergline.server.http.thread_pool import ThreadPool

_MAX_TOKENS_WAITING = 100
CHANGING: Final = frozenset(e.name for e in ENDPOINTS if e.takes_key or e is CREATE_VIEW)
"""Endpoints whose requests are recorded as changes."""
_PLANNING = {e.name for e in (PLAN_TABLE_SCAN, FETCH_PLANNING_RESULT, FETCH_SCAN_TASKS, LOAD_PULL_REQUEST)}
_CALLS_OUT = {e.name for e in (CREATE_WEBHOOK, TEST_WEBHOOK)}


class RequestThreads:
    """All pools: who reads waits for no writer, who has a token for none that is being checked."""

    def __init__(self, settings: ServerSettings) -> None:
        threads, few = settings.threads, max(settings.threads // 4, 1)
        queued = settings.max_queued
        tokens = min(queued, _MAX_TOKENS_WAITING)
        self.reads = ThreadPool("bergline-server", threads, queued)
        self.changes = ThreadPool("bergline-server-changes", threads, queued)
        """Writers may wait for the database."""
        self._slow = ThreadPool("bergline-server-slow", few, queued)
        self._planning = ThreadPool("bergline-server-planning", few, queued)
        self._known_tokens = ThreadPool("bergline-server-known-tokens", few, queued)
        self._tokens = ThreadPool("bergline-server-tokens", few, tokens)
        self._jwt = ThreadPool("bergline-server-jwt", few, tokens)

    def of(self, request: Request) -> ThreadPool:
        """The pool of a request."""
        name = request.endpoint.name
        if request.endpoint is GET_TOKEN:
            return self._tokens
        if name in _PLANNING:
            return self._planning
        if "purgeRequested" in request.query or name in _CALLS_OUT:
            return self._slow
        return self.changes if name in CHANGING else self.reads

    def of_token(self, authenticator: Authenticator, header: str | None) -> ThreadPool:
        """The pool that checks a token: those that are not known wait for each other alone."""
        if not authenticator.has_tokens or authenticator.knows(header):
            return self._known_tokens
        return self._jwt if authenticator.may_wait_for_keys(header) else self._tokens

    def close(self) -> None:
        """Finish what is running, and take no more."""
        for pool in (self.reads, self.changes, self._slow, self._planning, self._known_tokens, self._tokens, self._jwt):
            pool.close()
