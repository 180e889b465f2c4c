"""Joins and leaves the job, and tells this process's place in it."""
import atexit
import ctypes
import os
import sys

from . import _by_name, _join, _process_sets
from . import _library as lib
from ._engine import engine, watcher
from ._state import place, state


def init(comm=None, process_sets=None, *, init_timeout=None, op_timeout=None, join=None, order_by_name=None):
    """Joins the job; returns when all ranks have joined. Does nothing if already done.

    comm: None, or a list of all ranks (subsets are process sets). process_sets: a list of ProcessSet, the same on all
    ranks. init_timeout, op_timeout: seconds. join: True enables join() for ranks with less data than others, which
    costs a small exchange before every collective; default: DRUN_JOIN=1 in the environment. order_by_name: True lets
    ranks begin collectives in different orders, if the names are the same, and enables join(), too; default:
    DRUN_ORDER_BY_NAME=1."""
    if state.place is not None:
        return
    options = lib.InitOptions(ctypes.sizeof(lib.InitOptions), _milliseconds(init_timeout), _milliseconds(op_timeout))
    lib.check(lib.library().drun_init(ctypes.byref(options)))
    state.join(lib.library())
    atexit.register(_leave_at_exit)
    _join.forget()
    _join.enabled = _is_set("DRUN_JOIN", join)
    try:
        if comm is not None and sorted(comm) != list(range(state.place.size)):
            raise lib.DrunError("init(comm=...) takes all ranks: use process sets for parts of them", lib.ERROR_UNSUPPORTED)
        if _is_set("DRUN_ORDER_BY_NAME", order_by_name):
            _by_name.start(_seconds(init_timeout, "DRUN_INIT_TIMEOUT", 120), _seconds(op_timeout, "DRUN_OP_TIMEOUT", 300))
        if process_sets is not None and process_sets != "dynamic":
            for one in process_sets:
                _process_sets.add_process_set(one)
    except BaseException:
        shutdown()
        raise


def _seconds(given, variable, default):
    """libdrun has checked the variable."""
    return given or float(os.environ.get(variable) or default)


def _is_set(variable, given):
    return os.environ.get(variable, "0") not in ("", "0") if given is None else bool(given)


def _milliseconds(seconds):
    return 0 if seconds is None else max(1, round(seconds * 1000))


def shutdown():
    """Leaves the job cleanly, after all asynchronous calls have ended. Does nothing without init."""
    if state.place is None or state.pid != os.getpid():
        return
    engine.drain()
    _by_name.stop()
    watcher.drain()
    _process_sets.forget_all()
    state.leave()
    atexit.unregister(_leave_at_exit)
    lib.check(lib.library().drun_finalize())


def _leave_at_exit():
    """A script may end without shutdown(). If it ends by an exception or with calls under way, it leaves without
    waiting for others, which then see this rank as failed."""
    if getattr(sys, "last_value", None) is None and engine.is_idle() and (_by_name.order is None or _by_name.order.is_idle()):
        shutdown()
    else:
        engine.keep_for_ever()


def is_initialized():
    return state.place is not None


def rank():
    return place().rank


def size():
    return place().size


def local_rank():
    """This process's rank on its host."""
    return place().local_rank


def local_size():
    return place().local_size


def cross_rank():
    """This process's rank among the ranks of all hosts that have the same local rank."""
    return place().cross_rank


def cross_size():
    return place().cross_size


def is_homogeneous():
    """True if all hosts have the same number of ranks."""
    return place().is_homogeneous


def version():
    """The version of libdrun."""
    return lib.library().drun_version().decode()


def abort(why):
    """Ends the whole job with the reason `why`; the caller must still exit itself."""
    lib.check(lib.library().drun_abort(str(why).encode()))
