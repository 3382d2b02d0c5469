"""Rows of one data file to and from Arrow: one writer, one reader."""
