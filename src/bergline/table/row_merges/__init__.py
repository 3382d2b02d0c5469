"""UPDATE, upsert and MERGE from Python: the changing rows are found file by file in this process."""
