"""Namespaces of a REST catalog."""

from collections.abc import Collection, Iterator, Mapping

from bergline.catalog.identifiers import Namespace
from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.client.settle import happened
from bergline.catalog.rest.protocol.bodies import (
    CreateNamespaceRequest,
    GetNamespaceResponse,
    ListNamespacesResponse,
    UpdateNamespaceRequest,
)
from bergline.catalog.rest.protocol.endpoints import (
    CREATE_NAMESPACE,
    DROP_NAMESPACE,
    LIST_NAMESPACES,
    LOAD_NAMESPACE,
    NAMESPACE_EXISTS,
    UPDATE_NAMESPACE,
)
from bergline.errors import ConflictError, InvalidInputError, NotEmptyError, NotFoundError


class RestNamespaces:
    """Namespaces of a REST catalog, over a session."""

    def __init__(self, session: RestSession) -> None:
        self._session = session

    def create(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Create a namespace; after a lost response, one with these properties counts as ours."""
        about, request = _about(namespace), CreateNamespaceRequest(namespace, dict(properties))

        def send() -> None:
            self._session.calls.change(CREATE_NAMESPACE, about, body=request)

        def look() -> bool:
            found = self._properties(namespace)
            return found is not None and properties.items() <= found.items()

        happened(send, look, what=f"{about} was created", name=about.name, waits=self._session.waits())

    def drop(self, namespace: Namespace) -> None:
        """Remove an empty namespace."""
        about, names = _about(namespace), self._session.namespace_path(namespace)

        def send() -> None:
            try:
                self._session.calls.change(DROP_NAMESPACE, about, names=names)
            except ConflictError as error:  # for namespaces a 409 has only one meaning, whatever its type
                raise NotEmptyError(str(error)) from error

        happened(
            send,
            lambda: self._properties(namespace) is None,
            what=f"{about} was dropped",
            name=about.name,
            waits=self._session.waits(),
            always_look=True,
        )

    def exists(self, namespace: Namespace) -> bool:
        """Whether there is such a namespace."""
        endpoint = NAMESPACE_EXISTS if self._session.calls.has(NAMESPACE_EXISTS) else LOAD_NAMESPACE
        try:
            self._session.calls.call(endpoint, _about(namespace), names=self._session.namespace_path(namespace))
        except NotFoundError:
            return False
        return True

    def properties(self, namespace: Namespace) -> dict[str, str]:
        """The properties of a namespace."""
        about, names = _about(namespace), self._session.namespace_path(namespace)
        response = self._session.calls.call(LOAD_NAMESPACE, about, names=names)
        return self._session.calls.parsed(response, GetNamespaceResponse, about).properties or {}

    def update(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> None:
        """Set and remove properties; after a lost response it is enough that they have the new values."""
        if both := sorted(set(changes) & set(removals)):
            raise InvalidInputError(f"expected properties either set or removed, found `{both[0]}` in both")
        about, request = _about(namespace), UpdateNamespaceRequest(tuple(removals), dict(changes))

        def send() -> None:
            names = self._session.namespace_path(namespace)
            self._session.calls.change(UPDATE_NAMESPACE, about, names=names, body=request)

        def look() -> bool:
            found = self.properties(namespace)
            return changes.items() <= found.items() and not set(removals) & set(found)

        happened(send, look, what=f"the properties of {about} changed", name=about.name, waits=self._session.waits())

    def all_below(self, below: Namespace) -> list[Namespace]:
        """All namespaces, or all below one; the protocol lists one level at a time."""
        found, waiting = list[Namespace](), [below]
        while waiting:
            parent = waiting.pop()
            try:
                children = list(self._children(parent))
            except NotFoundError:
                if parent == below:
                    raise
                continue  # dropped since it was listed
            found += children
            waiting += children
        return sorted(found)

    def _children(self, parent: Namespace) -> Iterator[Namespace]:
        for page in self._session.pages(LIST_NAMESPACES, ListNamespacesResponse, _about(parent), below=parent):
            # a server with only one level returns the same list for every parent
            yield from (n for n in page.namespaces if len(n) == len(parent) + 1 and n[:-1] == parent)

    def _properties(self, namespace: Namespace) -> dict[str, str] | None:
        try:
            return self.properties(namespace)
        except NotFoundError:
            return None


def _about(namespace: Namespace) -> CallSubject:
    return CallSubject("namespace", ".".join(namespace))
