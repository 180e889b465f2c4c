"""One rank of horovod.run. Rank 0 writes the results of all: task.py FOLDER"""
import os
import pickle
import sys

if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):
    sys.path.pop(0)  # the function's modules are found as by python3 FILE
import horovod  # noqa: E402, F401  it finds drun
import drun  # noqa: E402


def main(folder):
    with open(os.path.join(folder, "call"), "rb") as file:
        func, args, kwargs = pickle.load(file)  # cloudpickle's format is pickle's
    result = func(*args, **kwargs)
    drun.init()
    results = drun.allgather_object(result)
    if drun.rank() == 0:
        with open(os.path.join(folder, "results"), "wb") as file:
            pickle.dump(results, file)
    drun.shutdown()


main(sys.argv[1])
