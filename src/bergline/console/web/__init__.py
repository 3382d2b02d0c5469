"""The console on the web: routing, sign-in, headers and rendering."""
