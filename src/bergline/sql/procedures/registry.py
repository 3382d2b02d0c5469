"""The procedures of `CALL system.…`, with the parameters and columns of the official runtime."""

from bergline.sql.procedures.changelog import CHANGELOG_PROCEDURES
from bergline.sql.procedures.expiry import EXPIRY_PROCEDURES, ORPHAN_PROCEDURES
from bergline.sql.procedures.imports import IMPORT_PROCEDURES
from bergline.sql.procedures.maintenance import MAINTENANCE_PROCEDURES
from bergline.sql.procedures.procedure import Procedure
from bergline.sql.procedures.refs import MERGE_PROCEDURES, REF_PROCEDURES
from bergline.sql.procedures.rewrites import REWRITE_PROCEDURES
from bergline.sql.procedures.statistics import STATISTICS_PROCEDURES
from bergline.sql.procedures.tables import TABLE_PROCEDURES

PROCEDURES: dict[str, Procedure] = {
    **REF_PROCEDURES,
    **ORPHAN_PROCEDURES,
    **TABLE_PROCEDURES,
    **REWRITE_PROCEDURES,
    **EXPIRY_PROCEDURES,
    **MAINTENANCE_PROCEDURES,
    **IMPORT_PROCEDURES,
    **STATISTICS_PROCEDURES,
    **CHANGELOG_PROCEDURES,
    **MERGE_PROCEDURES,
}
"""By name, in the order in which SHOW PROCEDURES lists them."""
