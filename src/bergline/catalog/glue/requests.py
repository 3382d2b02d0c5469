"""Requests to AWS Glue, retried only if the previous one certainly changed nothing."""

import os
import random
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from bergline.catalog.glue.errors import GlueFailure, code_of, failure_of, glue_error, is_glue_response, not_glue
from bergline.errors import UnavailableError

_READ_RETRIES = 2
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 5.0


class GlueResponse(Enum):
    """The result of a modifying request; only DONE changed something."""

    DONE = "done"
    MISSING = "EntityNotFoundException"
    TAKEN = "AlreadyExistsException"
    MOVED = "ConcurrentModificationException"


_REFUSALS = {a.value: a for a in (GlueResponse.MISSING, GlueResponse.TAKEN, GlueResponse.MOVED)}


class GlueCalls:
    """A boto3 client without its own retries, and the retry policy."""

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
        """The value under a key of the response; None if the entity does not exist."""
        response = self._read(operation, arguments)
        if response is not None and not isinstance(response.get(key), dict):
            raise not_glue(self.place)
        return None if response is None else response[key]

    def pages(self, operation: str, key: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        """All pages of a list; empty if the parent does not exist."""
        token: dict[str, str] = {}
        while (response := self._read(operation, arguments | token)) is not None:
            found = response.get(key)
            if not isinstance(found, list) or not all(isinstance(one.get("Name"), str) for one in found):
                raise not_glue(self.place)
            yield from found
            if not response.get("NextToken"):
                return
            if token == (token := {"NextToken": response["NextToken"]}):
                raise not_glue(self.place)  # would loop forever

    def change(self, operation: str, **arguments: Any) -> GlueResponse:
        """Send a modifying request. StorageError: the outcome is unknown; any other error: nothing was changed."""
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

    def settled(self, response: GlueResponse, what: str) -> GlueResponse:
        """The result of a change that is not retried; UnavailableError if Glue was busy."""
        if response is GlueResponse.MOVED:
            raise UnavailableError(f"{self.place} was changing {what} at that moment", hints=["try again"])
        return response

    def wait(self, number: int) -> None:
        """Wait before the next attempt, with exponential backoff."""
        self._sleep(random.uniform(0, min(_FIRST_WAIT_S * 2**number, _LONGEST_WAIT_S)))  # noqa: S311

    def close(self) -> None:
        """Close connections."""
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
        # on connections that a fork shares with its parent, responses would get mixed up
        if self._process != os.getpid():
            self._client, self._process = self._open(), os.getpid()
        response: dict[str, Any] = getattr(self._client, operation)(**self._everywhere, **arguments)
        if not is_glue_response(response):
            raise not_glue(self.place)
        return response

    def _retries(self, failure: GlueFailure, *, changes: bool) -> int:
        match failure:
            case GlueFailure.PUT_OFF:
                return self.max_retries
            case GlueFailure.NOT_SENT | GlueFailure.IN_DOUBT if not changes:
                return min(_READ_RETRIES, self.max_retries)
        return 0
