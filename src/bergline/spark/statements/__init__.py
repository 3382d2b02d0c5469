"""What statements do in a session with lakes: queries, changes of rows, scripts, views, frames as arguments."""
