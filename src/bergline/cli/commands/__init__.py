"""The commands, a module for each command or group of commands; `main` imports only that of the command that runs."""
