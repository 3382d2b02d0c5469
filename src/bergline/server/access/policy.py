"""A policy that is asked over HTTP beside grants, as Open Policy Agent is: it can only take away.

Whoever gets no answer does nothing: there is no decision without one. Answers are kept for a few seconds.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from bergline.catalog.rest.client.transport import NotSentError, ResponseLostError, Transport
from bergline.errors import RefusedError, UnavailableError
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import Securable
from bergline.server.access.oidc.issuer_settings import check_url

_LOG = logging.getLogger("bergline.server")
KEPT_S: Final = 5.0
_MAX_KEPT = 10_000
_PAUSE_S = 1.0
"""How long nobody asks again after a question without an answer: threads would wait for nothing."""
_TIMEOUTS_S, _LONGEST_S, _MOST_BYTES = (1.0, 2.0), 3.0, 64 * 1024
_LONGEST_REASON = 300
_OK = 200


class PolicyQuestion(msgspec.Struct, frozen=True):
    """Whether a caller may use a privilege that grants give."""

    principal: str
    groups: frozenset[str]
    privilege: Privilege
    securable: Securable


class PolicyAnswer(msgspec.Struct, frozen=True):
    """What a policy says."""

    allow: bool
    reason: str | None = None


class _Result(msgspec.Struct, frozen=True):
    result: bool | PolicyAnswer | None = None


class Policy:
    """A policy at an address of its own."""

    def __init__(self, url: str, catalog: str, clock: Callable[[], float] = time.monotonic) -> None:
        check_url(url, "the policy")
        self._url = url
        self._catalog = catalog
        self._clock = clock
        self._transport = Transport(_TIMEOUTS_S, _MOST_BYTES, _LONGEST_S)
        self._lock = threading.Lock()
        self._kept: dict[PolicyQuestion, tuple[PolicyAnswer, float]] = {}
        self._paused_until = float("-inf")

    def known(self, question: PolicyQuestion) -> PolicyAnswer | None:
        """The answer of a moment ago, if there is one; never waits."""
        answer, until = self._kept.get(question, (None, 0.0))
        return answer if self._clock() < until else None

    def ask(self, question: PolicyQuestion) -> PolicyAnswer:
        """The answer; UnavailableError if there is none."""
        known = self.known(question)
        if known is not None:
            return known
        asked_at = self._clock()
        if asked_at < self._paused_until:
            raise _no_answer()
        try:
            answer = self._answer(question)
        except (NotSentError, ResponseLostError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._paused_until = self._clock() + _PAUSE_S
            _LOG.warning("the policy at %s could not be asked: %s", self._url, error)
            raise _no_answer() from error
        with self._lock:
            self._kept.pop(question, None)  # so that the oldest is the first
            if len(self._kept) >= _MAX_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[question] = answer, asked_at + KEPT_S
        return answer

    def _answer(self, question: PolicyQuestion) -> PolicyAnswer:
        body = msgspec.json.encode({"input": self._input(question)})
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        response = self._transport.send("POST", self._url, headers, body)
        if response.status != _OK:
            raise ResponseLostError(f"expected status 200, found {response.status}")
        result = msgspec.json.decode(response.body, type=_Result).result
        match result:
            case None:  # where no rule of a policy applies
                return PolicyAnswer(allow=False, reason="it has no decision on this")
            case bool():
                return PolicyAnswer(result)
        return result

    def _input(self, question: PolicyQuestion) -> dict[str, Any]:
        of = question.securable
        return {
            "catalog": self._catalog,
            "principal": question.principal,
            "groups": sorted(question.groups),
            "privilege": question.privilege,
            "securable": {"kind": of.kind, "namespace": of.namespace, "name": of.name or None, "ref": of.ref},
        }


def refused_by_policy(question: PolicyQuestion, answer: PolicyAnswer) -> RefusedError:
    """The error for what grants give and the policy takes away."""
    ref = "" if question.securable.ref in {None, "*"} else f" for ref `{question.securable.ref}`"
    reason = "" if answer.reason is None else f": {_shown(answer.reason)}"
    return RefusedError(
        f"the policy of this server does not let `{question.principal}` use the privilege `{question.privilege}` on "
        f"{question.securable.described}{ref}{reason}"
    )


def _shown(reason: str) -> str:
    return "".join(c if c.isprintable() else " " for c in reason[:_LONGEST_REASON])


def _no_answer() -> UnavailableError:
    return UnavailableError("the policy of this server could not be asked, so nothing was done: try again later")
