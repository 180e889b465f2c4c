"""JAX; the test inserts the call that joins the job, as the documentation shows it."""
import os

import jax

# JOIN
from jax.experimental import multihost_utils

rank, size = jax.process_index(), jax.process_count()
values = multihost_utils.process_allgather(jax.numpy.array([rank + 1.0]))
print(f"rank {rank} of {size}: sum {values.sum():g}")
