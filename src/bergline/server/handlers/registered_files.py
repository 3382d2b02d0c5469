"""Which metadata files a caller may register: not those of a table or view that the caller may not read."""

from bergline.errors import RefusedError
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import table_of, view_of
from bergline.server.context.context import ServerContext
from bergline.server.http.request import Request


def check_registered_file(context: ServerContext, request: Request, metadata_location: str, home: str) -> None:
    """RefusedError for a metadata file in a directory of another's, or of a table whose location, `home`, is another's.

    Who registers a file owns what is in it. Tables in the trash count too.
    """
    if not context.access.is_active:
        return
    who, store = (request.principal, request.groups), context.store
    places = {place.rstrip("/") for place in (metadata_location.rpartition("/")[0], home)} - {""}
    found = [table_of(name) for name in store.names_with_metadata_in(places)]
    found += [view_of(name) for name in (store.views.names_with_metadata_in(places) if store.views else ())]
    found += [
        table_of(dropped.name)
        for dropped in store.table_trash.near(places)
        if any(dropped.metadata_location.startswith(f"{place}/") for place in places)
    ]
    if not all(context.access.may(*who, Privilege.READ, other) for other in found):
        raise RefusedError(
            f"cannot register `{metadata_location[:200]}`: it is a file of something that `{request.principal}` "
            "may not read",
            hints=["an administrator of the catalog can register it"],
        )
