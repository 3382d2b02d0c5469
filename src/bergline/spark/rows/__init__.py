"""Rows of tables read and rewritten on executors, for operations that plan and commit."""
