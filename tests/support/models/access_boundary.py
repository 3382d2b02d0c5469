"""What a credential access boundary of Google allows: a permission on an object, or a list of keys with a prefix."""

import re
from typing import Any

_OBJECT = re.compile(r"resource\.name\.startsWith\('([^'\\]*)'\)")
_LIST = re.compile(r"api\.getAttribute\('storage\.googleapis\.com/objectListPrefix', ''\)\.startsWith\('([^'\\]*)'\)")
_PERMISSIONS = {
    "inRole:roles/storage.objectViewer": {"get", "list"},
    "inRole:roles/storage.legacyBucketWriter": {"create", "delete", "list"},
}


def boundary_allows(boundary: Any, permission: str, bucket: str, key: str = "", prefix: str = "") -> bool:
    """Whether any rule makes a permission available for a request."""
    return any(_applies(rule, permission, bucket, key, prefix) for rule in boundary["accessBoundaryRules"])


def _applies(rule: Any, permission: str, bucket: str, key: str, prefix: str) -> bool:
    assert set(rule) == {"availableResource", "availablePermissions", "availabilityCondition"}
    if rule["availableResource"] != f"//storage.googleapis.com/projects/_/buckets/{bucket}":
        return False
    if not any(permission in _PERMISSIONS[role] for role in rule["availablePermissions"]):
        return False
    of_objects, of_lists = rule["availabilityCondition"]["expression"].split(" || ")
    objects, lists = _OBJECT.fullmatch(of_objects), _LIST.fullmatch(of_lists)
    assert objects
    assert lists
    name = f"projects/_/buckets/{bucket}" + (f"/objects/{key}" if key else "")
    return name.startswith(objects[1]) or prefix.startswith(lists[1])
