"""What a credential access boundary of Google allows: a permission on an object, or a list of keys with a prefix."""

import re
from typing import Any

_OBJECT = re.compile(r"resource\.name\.startsWith\('([^'\\]*)'\)")
_NOT = re.compile(r"!resource\.name\.endsWith\('([^'\\]*)'\)")
_LIST = re.compile(r"api\.getAttribute\('storage\.googleapis\.com/objectListPrefix', ''\)\.startsWith\('([^'\\]*)'\)")
_PERMISSIONS = {
    "inRole:roles/storage.objectViewer": {"get", "list"},
    "inRole:roles/storage.objectCreator": {"create"},
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
    of_names, _, of_lists = rule["availabilityCondition"]["expression"].partition(" || ")
    of_objects, *of_others = of_names.split(" && ")
    objects, others = _OBJECT.fullmatch(of_objects), [_NOT.fullmatch(one) for one in of_others]
    assert objects
    assert not (of_lists and of_others)
    lists = _LIST.fullmatch(of_lists)
    assert lists or not of_lists
    name = f"projects/_/buckets/{bucket}" + (f"/objects/{key}" if key else "")
    if name.startswith(objects[1]):
        return all(one is not None and not name.endswith(one[1]) for one in others)
    return lists is not None and prefix.startswith(lists[1])
