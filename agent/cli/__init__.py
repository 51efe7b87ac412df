"""The command line: one module per family of commands."""
