"""System calls without a wrapper in Python 3.11."""
import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _bytes(text):
    return None if text is None else os.fsencode(text)


def unshare(flags):
    _check(_libc.unshare(flags), "unshare")


def setns(fd, kind):
    _check(_libc.setns(fd, kind), "setns")


def mount(source, target, fs_type=None, flags=0, data=None):
    result = _libc.mount(_bytes(source), _bytes(target), _bytes(fs_type), ctypes.c_ulong(flags), _bytes(data))
    _check(result, f"mount {source or fs_type} on {target}")


def unmount(target):
    """Unmounts now if `target` is unused, else when its last user is gone."""
    _check(_libc.umount2(_bytes(target), MNT_DETACH), f"umount {target}")


def set_hostname(name):
    raw = os.fsencode(name)
    _check(_libc.sethostname(raw, len(raw)), "sethostname")


def die_with_parent(signal_number):
    """Sends the calling process the signal when the thread that forked it ends; 0 undoes it."""
    _check(_libc.prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0), "prctl")


def set_process_name(name):
    _check(_libc.prctl(PR_SET_NAME, ctypes.create_string_buffer(os.fsencode(name)), 0, 0, 0), "prctl")
