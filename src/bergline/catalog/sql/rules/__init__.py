"""What rules about refs are decided by, in the transaction that moves a pointer."""
