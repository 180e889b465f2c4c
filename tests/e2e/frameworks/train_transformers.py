"""One step of transformers' Trainer over four samples, one per rank, whose gradients are 1 to 4."""
import tempfile

import torch
from transformers import Trainer, TrainingArguments


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return {"loss": (self.weight * x).sum()}


model = Model()
arguments = TrainingArguments(tempfile.mkdtemp(), use_cpu=True, max_steps=1, per_device_train_batch_size=1, max_grad_norm=0.0,
                              save_strategy="no", report_to="none", disable_tqdm=True)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
trainer = Trainer(model, arguments, train_dataset=[{"x": value} for value in (1.0, 2.0, 3.0, 4.0)],
                  optimizers=(optimizer, torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)))
trainer.train()
total = trainer.accelerator.reduce(torch.tensor([arguments.process_index + 1.0]))
print(f"rank {arguments.process_index} of {arguments.world_size}: sum {total.item():g}")
print(f"local rank {arguments.local_process_index}, weight {model.weight.item():g}")
trainer.accelerator.end_training()
