"""The command line: arguments, terminal, and one module for each command."""
