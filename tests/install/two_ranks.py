"""The sum over a job of two ranks, 3.0, and the path of the libdrun that the Python package has loaded."""
import array

import drun

drun.init()
data = array.array("d", [drun.rank() + 1])
print("sum", drun.allreduce(data, op=drun.Sum)[0], "by", drun._library.library()._name)
