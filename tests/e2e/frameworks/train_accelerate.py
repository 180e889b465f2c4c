"""One step with accelerate's Accelerator; each rank's gradient is its rank + 1."""
import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
rank, size = accelerator.process_index, accelerator.num_processes
total = accelerator.reduce(torch.tensor([rank + 1.0]))
print(f"rank {rank} of {size}: sum {total.item():g}")

layer = torch.nn.Linear(1, 1, bias=False)
layer.weight.data.zero_()
model, optimizer = accelerator.prepare(layer, torch.optim.SGD(layer.parameters(), lr=1.0))
accelerator.backward(model(torch.tensor([[rank + 1.0]])).sum())
optimizer.step()
print(f"local rank {accelerator.local_process_index}, weight {layer.weight.item():g}")
accelerator.end_training()
