"""Threads."""
import threading


def in_thread(target, args=(), name=None, daemon=True, silent=False):
    """Starts target(*args) in a thread and returns it. `silent`: its exceptions are not printed."""

    def run():
        try:
            target(*args)
        except Exception:
            if not silent:
                raise

    thread = threading.Thread(target=run, name=name, daemon=daemon)
    thread.start()
    return thread
