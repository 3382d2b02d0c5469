"""Branches of the lake behind a bergline server."""

from typing import Any

from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.retries import ChangeInDoubtError
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.protocol.endpoints import Endpoint
from bergline.catalog.rest.protocol.names import encode_name
from bergline.errors import CommitUnknownError, NotFoundError, RefusedError
from bergline.governance.lake_branches import protocol
from bergline.governance.lake_branches.model import LAKE_BRANCH, LakeBranch, NewLakeBranch, missing_lake_branch


class RestLakeBranches:
    """The branches of a server's lake; the server decides who may create and drop them."""

    def __init__(self, session: RestSession) -> None:
        self._session = session

    def create(self, new: NewLakeBranch) -> LakeBranch:
        done: LakeBranch = self._change(protocol.CREATE_LAKE_BRANCH, new.name, body=new)
        return done

    def remove(self, name: str) -> None:
        self._change(protocol.DROP_LAKE_BRANCH, name, names={"branch": encode_name(name)})

    def check_may_drop(self, name: str) -> LakeBranch:
        found = self._load(name)
        if found is None:
            raise missing_lake_branch(name, self)
        if found.drop_refused is not None:
            raise RefusedError(found.drop_refused)
        return found.branch

    def find(self, name: str) -> LakeBranch | None:
        found = self._load(name)
        return None if found is None else found.branch

    def all(self) -> list[LakeBranch]:
        about = CallSubject("branches of the lake", "")
        response = self._session.calls.call(protocol.LIST_LAKE_BRANCHES, about)
        return list(self._session.calls.parsed(response, protocol.ListLakeBranchesResponse, about).branches)

    def _load(self, name: str) -> protocol.LoadLakeBranchResponse | None:
        about = CallSubject(LAKE_BRANCH, name)
        try:
            response = self._session.calls.call(protocol.LOAD_LAKE_BRANCH, about, names={"branch": encode_name(name)})
        except NotFoundError:
            return None
        return self._session.calls.parsed(response, protocol.LoadLakeBranchResponse, about)

    def _change(self, endpoint: Endpoint, name: str, **sent: Any) -> Any:
        try:
            return self._session.calls.change(endpoint, CallSubject(LAKE_BRANCH, name), **sent).content
        except ChangeInDoubtError as error:
            raise CommitUnknownError(
                f"cannot find out whether branch `{name}` of the lake was changed: {error}",
                table=name,
                metadata_location=None,
                hints=["list the branches of the lake before you try again"],
            ) from error
