"""This process's place in the job. Kept here so that forked children (data loaders) can still ask for it."""
import collections
import os

from . import _library as lib

Place = collections.namedtuple("Place", "rank size local_rank local_size cross_rank cross_size is_homogeneous")


class _State:
    def __init__(self):
        self.place = None
        self.pid = None  # the process that may call collectives
        self.why_not = "drun.init() has not been called"

    def join(self, library):
        self.place = Place(library.drun_rank(), library.drun_size(), library.drun_local_rank(), library.drun_local_size(),
                           library.drun_cross_rank(), library.drun_cross_size(),
                           library.drun_is_homogeneous() == 1)
        self.pid = os.getpid()

    def leave(self):
        self.place = None
        self.why_not = "drun.shutdown() has been called; drun.init() joins the job again"


state = _State()


def place():
    if state.place is None:
        raise lib.DrunError(state.why_not, lib.ERROR_STATE)
    return state.place
