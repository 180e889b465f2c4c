"""One step of Lightning's Trainer; each rank's gradient is its rank + 1."""
import lightning
import torch


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def training_step(self, batch, _):
        return (self.weight * batch[0]).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1.0)


model = Model()
trainer = lightning.Trainer(devices=2, num_nodes=2, accelerator="cpu", strategy="ddp", max_steps=1, logger=False,
                            enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(model, torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(1.0, 5.0))))
total = trainer.strategy.reduce(torch.tensor([trainer.global_rank + 1.0]), reduce_op="sum")
print(f"rank {trainer.global_rank} of {trainer.world_size}: sum {total.item():g}")
print(f"local rank {trainer.local_rank}, weight {model.weight.item():g}")
