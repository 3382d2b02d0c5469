"""Namespaces of a pointer catalog."""

from collections.abc import Callable, Collection, Mapping

from bergline.catalog.identifiers import Namespace
from bergline.catalog.pointer.locations import check_home
from bergline.catalog.pointer.named_pointers import check_namespace
from bergline.catalog.pointer.pointer_store import NOTHING_CHANGED
from bergline.catalog.pointer.store_access import StoreAccess
from bergline.errors import AlreadyExistsError, BerglineError, CommitUnknownError, InvalidInputError, NotEmptyError

_HIDDEN_PROPERTY = "exists"  # how the shared SQL layout marks a namespace


class PointerNamespaces:
    """Namespaces with properties, over any PointerStore."""

    def __init__(self, access: StoreAccess) -> None:
        self._access = access

    def create(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Create a namespace."""
        _check_properties(properties)
        check_home(namespace, properties)
        store = self._access.store
        was_there = store.namespace_exists(namespace)  # so that it is not mistaken for ours after a lost response

        def is_created() -> bool:
            found = store.namespace_properties(namespace)
            return found is not None and not was_there and properties.items() <= found.items()

        def create() -> bool:
            return store.create_namespace(namespace, properties)

        if not self._settled(create, is_created, namespace, "created"):
            name = ".".join(namespace)
            raise AlreadyExistsError(f"namespace `{name}` exists already", kind="namespace", name=name)

    def drop(self, namespace: Namespace) -> None:
        """Remove an empty namespace."""
        store = self._access.store
        check_namespace(store, namespace)

        def is_gone() -> bool:
            return not store.namespace_exists(namespace)

        if not self._settled(lambda: store.drop_namespace(namespace), is_gone, namespace, "dropped"):
            raise NotEmptyError(f"cannot drop namespace `{'.'.join(namespace)}`: it is not empty")

    def properties(self, namespace: Namespace) -> dict[str, str]:
        """The properties of a namespace."""
        store = self._access.store
        found = store.namespace_properties(namespace)
        if found is None:
            check_namespace(store, namespace)
        return found or {}

    def update(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> None:
        """Set and remove properties; others stay."""
        _check_properties((*changes, *removals))
        check_home(namespace, changes)
        if both := sorted(set(changes) & set(removals)):
            raise InvalidInputError(f"expected properties either set or removed, found `{both[0]}` in both")
        store = self._access.store

        def update() -> bool:
            return store.update_namespace(namespace, changes, removals)

        if not self._settled(update, update, namespace, "changed"):
            check_namespace(store, namespace)

    def all_below(self, namespace: Namespace) -> list[Namespace]:
        """All namespaces, or all below one, at every level."""
        store = self._access.store
        if namespace:
            check_namespace(store, namespace)
        return store.list_namespaces(namespace)

    def _settled(
        self, change: Callable[[], bool], is_done: Callable[[], bool], namespace: Namespace, what: str
    ) -> bool:
        """Make a change; after a lost response, check whether it was made, and repeat it if not."""
        try:
            return change()
        except NOTHING_CHANGED:
            raise
        except Exception as error:
            name = ".".join(namespace)
            for wait in self._access.waits({}):
                try:
                    if is_done() or change() or is_done():
                        return True
                    break
                except (BerglineError, OSError):
                    wait()
            raise CommitUnknownError(
                f"cannot find out whether namespace `{name}` was {what}: {error}",
                table=name,
                metadata_location=None,
            ) from error


def _check_properties(names: Collection[str]) -> None:
    if _HIDDEN_PROPERTY in names:
        raise InvalidInputError(f"expected another name for a property of a namespace, found `{_HIDDEN_PROPERTY}`")
