"""Horovod's exceptions."""
from drun import DrunError

# Raised by collectives, as in Horovod.
HorovodInternalError = DrunError


class HostsUpdatedInterrupt(RuntimeError):
    """Never raised: a job of drun has the hosts that it began with."""

    def __init__(self, skip_sync=False):
        super().__init__()
        self.skip_sync = skip_sync


class HorovodVersionMismatchError(ImportError):
    def __init__(self, name, version, installed_version):
        super().__init__(f"{name} {installed_version} was installed, but Horovod was built with {version}")
        self.name = name
        self.version = version
        self.installed_version = installed_version
