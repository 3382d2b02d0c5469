"""Maintenance of many tables by a policy: planned, done, and reported."""
