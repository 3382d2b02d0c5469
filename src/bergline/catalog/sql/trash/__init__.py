"""What was dropped: the rows of tables and views that may come back until their time is over."""
