"""Governance in a catalog's database: grants, rules, reviews, pull requests and events."""
