"""One rank of horovod.run: task.py FOLDER. The call comes on stdin; rank 0 writes the results of all to FOLDER."""
import os
import pickle
import socket
import sys

if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):
    sys.path.pop(0)  # the function's modules are found as by python3 FILE
import horovod  # noqa: E402, F401  it finds drun
import drun  # noqa: E402


def main(folder):
    if os.environ["DRUN_RANK"] == "0" and not os.path.isdir(folder):
        sys.exit(f"horovod.run: rank 0 is on {socket.gethostname()}, which doesn't have {folder} of the calling host for the "
                 "results; name the calling host (localhost) first in hosts")
    func, args, kwargs = pickle.load(sys.stdin.buffer)  # cloudpickle's format is pickle's
    result = func(*args, **kwargs)
    drun.init()
    results = drun.allgather_object(result)
    if drun.rank() == 0:
        with open(os.path.join(folder, "results"), "wb") as file:
            pickle.dump(results, file)
    drun.shutdown()


main(sys.argv[1])
