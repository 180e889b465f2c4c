"""The common parts of the measurements beside peers: the cluster, the launchers, rounds, tables, the page, pictures."""
