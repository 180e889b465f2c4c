"""Horovod's elastic interface in a job whose ranks stay the same: a state is shared at the start, and nothing is lost or
added later. A rank that fails ends the job."""
import copy
import functools

from drun import broadcast_object


def run(func):
    """Decorator: the first argument of the function is the state, which all ranks get from rank 0 first."""

    @functools.wraps(func)
    def run_with_state(state, *args, **kwargs):
        state.sync()
        return func(state, *args, **kwargs)

    return run_with_state


class State:
    """Attributes: the given values. commit() keeps a copy in memory, restore() takes it back, sync() gives rank 0's to all
    ranks. Frontends say how that is done with models and optimizers."""

    def __init__(self, **given):
        self.__dict__["_names"] = sorted(given)
        self.__dict__["_kept"] = {}
        self.__dict__["_callbacks"] = []
        self.__dict__.update(given)
        self.save()

    def register_reset_callbacks(self, callbacks):
        """They are called when the ranks of a job change, which they don't here."""
        self._callbacks.extend(callbacks)

    def on_reset(self):
        for callback in self._callbacks:
            callback()

    def commit(self):
        self.save()

    def check_host_updates(self):
        """Hosts stay as they are."""

    def save(self):
        self._kept.update({name: self._copy(getattr(self, name)) for name in self._names})

    def restore(self):
        for name, kept in self._kept.items():
            self._restore(name, kept)

    def sync(self):
        for name in self._names:
            self._share(name, getattr(self, name))
        self.save()

    def _copy(self, value):
        return copy.deepcopy(value)

    def _restore(self, name, kept):
        setattr(self, name, copy.deepcopy(kept))

    def _share(self, name, value):
        setattr(self, name, broadcast_object(value, root_rank=0, name=f"state {name}"))


class ObjectState(State):
    """Plain values."""
