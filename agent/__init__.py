"""The wayout daemon and everything an operator touches."""
