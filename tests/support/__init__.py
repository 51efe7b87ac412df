"""Builders and fakes that behave."""
