"""Bytes to messages and back: every layer of the memberlist wire format."""
