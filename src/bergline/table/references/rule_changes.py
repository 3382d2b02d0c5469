"""Changes to the rules that protect refs, which are kept in the table's properties."""

from bergline.arguments import check_text
from bergline.catalog.protection.ref_rule import RefRule, render_rule
from bergline.catalog.protection.table_rules import property_of, rule_texts
from bergline.errors import NotFoundError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import RemoveProperties, SetProperties
from bergline.table.commits.operation import Change, MetadataOperation


def set_rule(rule: RefRule) -> MetadataOperation:
    """Set a rule, replacing an earlier one with the same pattern."""
    key = property_of(rule.pattern)
    return MetadataOperation(
        lambda _: Change((SetProperties({key: render_rule(rule)}),)), overwrites=lambda base: base.properties.get(key)
    )


def remove_rule(pattern: str) -> MetadataOperation:
    """Remove the rule of a pattern."""
    key = property_of(check_text(pattern, "the pattern of a rule"))

    def remove(base: TableMetadata) -> Change:
        if key not in base.properties:
            known = rule_texts(base.properties)
            raise NotFoundError(f"no rule `{pattern}` that protects refs", kind="rule", name=pattern, known=known)
        return Change((RemoveProperties((key,)),))

    return MetadataOperation(remove, overwrites=lambda base: base.properties.get(key))
