"""Handlers of bergline's own endpoints about governance."""
