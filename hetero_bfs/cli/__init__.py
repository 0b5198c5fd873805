"""The command line: arguments, terminal, and what each command runs."""
