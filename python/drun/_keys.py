"""The job's key-value store: small values that all ranks see until they have called shutdown()."""
import ctypes

from . import _library as lib


def kv_set(key, value):
    """Sets `key` (str) to `value` (bytes or str). A key is written once: another value is an error until kv_delete."""
    value = value.encode() if isinstance(value, str) else bytes(value)
    lib.check(lib.library().drun_kv_set(key.encode(), value, len(value)))


def kv_get(key, timeout=300):
    """Waits, at most for `timeout` seconds, until `key` is set, and returns its value as bytes."""
    milliseconds = max(0, round(timeout * 1000))
    room = 4096
    while True:
        value, n_bytes = ctypes.create_string_buffer(room), ctypes.c_size_t(room)
        status = lib.library().drun_kv_get(key.encode(), value, ctypes.byref(n_bytes), milliseconds)
        if status != lib.ERROR_TRUNCATED or n_bytes.value <= room:
            lib.check(status)
            return value.raw[:n_bytes.value]
        room = n_bytes.value


def kv_delete(key):
    """Deletes `key`, and returns whether it was set. It may then be set again, to any value."""
    existed = ctypes.c_int()
    lib.check(lib.library().drun_kv_delete(key.encode(), ctypes.byref(existed)))
    return existed.value != 0
