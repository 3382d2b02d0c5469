"""Statements that need no engine: each module holds what its statements mean, their parsers and their runners."""
