"""Hosts made of namespaces: the parts of tests/e2e/cluster, in the order in which `up` uses them.

plan -> supervisor -> {network, machine -> homes, sshd} -> state; `exec`, `cut` and similar commands use state and
enter.
"""
