"""One step of DeepSpeed on CPUs; each rank's gradient is its rank + 1."""
import deepspeed
import torch

deepspeed.init_distributed()
rank, size = deepspeed.comm.get_rank(), deepspeed.comm.get_world_size()
total = torch.tensor([rank + 1.0])
deepspeed.comm.all_reduce(total)
print(f"rank {rank} of {size}: sum {total.item():g}")

layer = torch.nn.Linear(1, 1, bias=False)
layer.weight.data.zero_()
engine, _, _, _ = deepspeed.initialize(model=layer, optimizer=torch.optim.SGD(layer.parameters(), lr=1.0),
                                       config={"train_micro_batch_size_per_gpu": 1, "gradient_clipping": 0.0})
engine.backward(engine(torch.tensor([[rank + 1.0]])).sum())
engine.step()
print(f"local rank {engine.local_rank}, weight {layer.weight.item():g}")
deepspeed.comm.destroy_process_group()
