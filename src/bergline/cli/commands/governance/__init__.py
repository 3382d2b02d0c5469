"""Commands about who may do what, and about what is published."""
