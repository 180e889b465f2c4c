"""The command `drun` of the wheel."""
import os
import sys


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "drun")
    try:
        os.execv(path, ["drun", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"drun: {path}: {error.strerror}; was this package installed from a wheel of build-wheel?")
