"""Conditions between Spark and our filters, and which branches a frame reads."""
