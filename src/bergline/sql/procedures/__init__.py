"""The procedures of `CALL system.…`."""
