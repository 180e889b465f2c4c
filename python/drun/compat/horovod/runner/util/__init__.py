"""Helpers that Horovod's own tests import."""
