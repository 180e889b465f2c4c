"""A script that requires torchrun."""
import os

import torch
import torch.distributed as dist

assert dist.is_torchelastic_launched() and os.environ["TORCHELASTIC_USE_AGENT_STORE"]
dist.init_process_group()
total = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: sum {total.item():g}", flush=True)
dist.destroy_process_group()
