"""Manifests in a commit: files looked up, removed, and manifests merged."""
