"""All actions by the last part of their address."""

from bergline.console.actions.expiry import EXPIRE
from bergline.console.actions.moves import FAST_FORWARD, MERGE, ROLL_BACK
from bergline.console.actions.refs import CREATE_BRANCH, CREATE_TAG, DROP_REF, RENAME_REF, SET_RETENTION
from bergline.console.actions.review import ConsoleAction

ACTIONS: dict[str, ConsoleAction] = {
    action.key: action
    for action in (
        CREATE_BRANCH,
        CREATE_TAG,
        MERGE,
        FAST_FORWARD,
        ROLL_BACK,
        RENAME_REF,
        DROP_REF,
        SET_RETENTION,
        EXPIRE,
    )
}
