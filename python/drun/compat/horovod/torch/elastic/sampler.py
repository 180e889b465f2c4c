"""Each rank's part of the samples that no rank has processed in this epoch."""
import math
import random

import torch

from ..functions import allgather_object
from ..mpi_ops import is_initialized, rank, size


class ElasticSampler(torch.utils.data.Sampler):
    def __init__(self, dataset, shuffle=True, seed=0):
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.processed_indices = set()
        self.reset()

    def set_epoch(self, epoch):
        """Begins an epoch, at its end or its start."""
        self.epoch = epoch
        self.processed_indices = set()
        self.reset()

    def record_batch(self, batch_idx, batch_size):
        """This rank has processed that batch of its part."""
        self.record_indices(self.get_indices(batch_idx, batch_size))

    def record_indices(self, indices):
        self.processed_indices.update(indices)

    def get_indices(self, batch_idx, batch_size):
        begin = batch_idx * batch_size
        return self.indices[begin:begin + batch_size]

    def state_dict(self):
        return {"epoch": self.epoch, "processed_indices": self.processed_indices}

    def load_state_dict(self, state_dict):
        self.epoch = state_dict["epoch"]
        self.processed_indices = set(state_dict["processed_indices"])
        self.reset()

    def share(self):
        """What any rank has processed is processed."""
        states = allgather_object(self.state_dict(), name="elastic sampler")
        self.load_state_dict({"epoch": states[0]["epoch"],
                              "processed_indices": set().union(*(one["processed_indices"] for one in states))})

    def reset(self):
        """Divides what is left among the ranks, as evenly as possible: some samples come twice."""
        self.num_replicas = size() if is_initialized() else 1
        self.rank = rank() if is_initialized() else 0
        self.remaining_indices = [index for index in range(len(self.dataset)) if index not in self.processed_indices]
        self.num_samples = math.ceil(len(self.remaining_indices) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas
        self.indices = self._own_part()

    def _own_part(self):
        order = list(self.remaining_indices)
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        while len(order) < self.total_size:
            order += order[: self.total_size - len(order)]
        return order[self.rank:self.total_size:self.num_replicas]

    def __iter__(self):
        self.indices = self._own_part()
        return iter(self.indices)

    def __len__(self):
        return self.num_samples
