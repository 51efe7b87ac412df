"""A local cluster of real daemons in network namespaces."""
