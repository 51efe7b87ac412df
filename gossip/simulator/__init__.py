"""The real machines on a pretended network, in virtual time: what to expect from settings."""
