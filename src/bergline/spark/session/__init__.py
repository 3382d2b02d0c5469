"""What the methods of an attached session do for lake tables."""
