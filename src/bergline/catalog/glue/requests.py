"""Requests to AWS Glue, each sent again only where the one before certainly changed nothing."""

import os
import random
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from bergline.catalog.glue.errors import GlueFailure, code_of, failure_of, glue_error, is_glues_answer, not_glue
from bergline.errors import UnavailableError

_READ_RETRIES = 2
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 5.0


class GlueResponse(Enum):
    """What Glue says to a request that would change something; only DONE changed it."""

    DONE = "done"
    MISSING = "EntityNotFoundException"
    TAKEN = "AlreadyExistsException"
    MOVED = "ConcurrentModificationException"


_REFUSALS = {a.value: a for a in (GlueResponse.MISSING, GlueResponse.TAKEN, GlueResponse.MOVED)}


class GlueCalls:
    """A boto3 client that sends nothing twice by itself, and when to ask it again."""

    def __init__(
        self,
        open_client: Callable[[], Any],
        *,
        catalog_id: str | None,
        max_retries: int,
        sleep: Callable[[float], None],
    ) -> None:
        self._open = open_client
        self._client, self._process = open_client(), os.getpid()
        self._everywhere = {"CatalogId": catalog_id} if catalog_id else {}
        self.max_retries = max_retries
        self._sleep = sleep
        self.place = f"AWS Glue at {self._client.meta.endpoint_url}"

    def read(self, operation: str, key: str, **arguments: Any) -> dict[str, Any] | None:
        """What the answer has under a key; None if there is no such thing."""
        answer = self._read(operation, arguments)
        if answer is not None and not isinstance(answer.get(key), dict):
            raise not_glue(self.place)
        return None if answer is None else answer[key]

    def pages(self, operation: str, key: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        """Everything in a list; nothing if there is no such list."""
        token: dict[str, str] = {}
        while (answer := self._read(operation, arguments | token)) is not None:
            found = answer.get(key)
            if not isinstance(found, list) or not all(isinstance(one.get("Name"), str) for one in found):
                raise not_glue(self.place)
            yield from found
            if not answer.get("NextToken"):
                return
            if token == (token := {"NextToken": answer["NextToken"]}):
                raise not_glue(self.place)  # it would never end

    def change(self, operation: str, **arguments: Any) -> GlueResponse:
        """Change something, once. StorageError leaves the outcome in doubt; after any other nothing was changed."""
        number = 0
        while True:
            try:
                self._send(operation, arguments)
            except Exception as error:
                if refusal := _REFUSALS.get(code_of(error) or ""):
                    return refusal
                if number >= self._retries(failure_of(error), changes=True):
                    raise glue_error(self.place, f"did not do {operation}", error, changes=True) from error
            else:
                return GlueResponse.DONE
            self.wait(number)
            number += 1

    def settled(self, answer: GlueResponse, what: str) -> GlueResponse:
        """The answer, where nothing is there yet that could move; UnavailableError if Glue was busy with it."""
        if answer is GlueResponse.MOVED:
            raise UnavailableError(f"{self.place} was changing {what} at that moment", hints=["try again"])
        return answer

    def wait(self, number: int) -> None:
        """Wait before the next try, longer each time."""
        self._sleep(random.uniform(0, min(_FIRST_WAIT_S * 2**number, _LONGEST_WAIT_S)))  # noqa: S311

    def close(self) -> None:
        """Let go of connections."""
        self._client.close()

    def _read(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        number = 0
        while True:
            try:
                return self._send(operation, arguments)
            except Exception as error:
                if code_of(error) == GlueResponse.MISSING.value:
                    return None
                if number >= self._retries(failure_of(error), changes=False):
                    raise glue_error(self.place, f"did not answer {operation}", error, changes=False) from error
            self.wait(number)
            number += 1

    def _send(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        # on connections that a fork shares with its parent, answers would get mixed up
        if self._process != os.getpid():
            self._client, self._process = self._open(), os.getpid()
        answer: dict[str, Any] = getattr(self._client, operation)(**self._everywhere, **arguments)
        if not is_glues_answer(answer):
            raise not_glue(self.place)
        return answer

    def _retries(self, failure: GlueFailure, *, changes: bool) -> int:
        match failure:
            case GlueFailure.PUT_OFF:
                return self.max_retries
            case GlueFailure.NOT_SENT | GlueFailure.IN_DOUBT if not changes:
                return min(_READ_RETRIES, self.max_retries)
        return 0
