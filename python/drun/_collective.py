"""A collective whose arguments have been checked, and who carries it out."""
from . import _by_name, _join
from ._engine import engine


class Collective:
    """kind: as in errors. group: the ranks. name: None, or the call's. streams: those that the call is ordered on.
    is_one_call: libdrun can carry out work() alone, asynchronously."""

    kind = ""
    is_one_call = False
    n_joined = 0  # ranks that take part with zeros, if calls are ordered by name

    def __init__(self, group, name=None, streams=()):
        self.group = group
        self.name = name
        self.streams = streams

    def work(self, requests=None):
        """Makes the calls of libdrun in their turn, and returns the result."""
        raise NotImplementedError

    def fields(self):
        """What must be the same on all ranks, as JSON has it. A list of lists: allreduces, as _by_name._Zeros."""
        return []

    def run(self):
        order = _by_name.order
        return order.submit(self, waits=True).wait() if order else engine.run(self.work)

    def begin(self):
        """Returns a handle."""
        order = _by_name.order
        if order:
            return order.submit(self, waits=False)
        if not self.is_one_call or _join.announces(self.group):
            return engine.submit(self.work, self.streams)
        return engine.begin(self.work, self, self.streams)


class Steps(Collective):
    """A collective of several calls, by a function."""

    def __init__(self, kind, group, name, work, fields=("",)):
        super().__init__(group, name)
        self.kind = kind
        self._work = work
        self._fields = list(fields)

    def work(self, requests=None):
        return self._work()

    def fields(self):
        return self._fields
