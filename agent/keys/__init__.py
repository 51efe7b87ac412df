"""Gossip keys: the file, the ring of the running daemon, and its rotation in the whole cluster."""
