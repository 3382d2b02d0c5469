"""UPDATE, upsert and MERGE from Python: which rows of a table change, found file by file in this process."""
