"""Commands about branches and tags."""
