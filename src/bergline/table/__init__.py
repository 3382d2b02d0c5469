"""Tables, the operations on them, and the one commit loop."""
