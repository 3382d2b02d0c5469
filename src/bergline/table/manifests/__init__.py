"""Manifests in a commit: looking up and removing files, and merging manifests."""
