"""Tables and what can be done to them; the one commit loop."""
