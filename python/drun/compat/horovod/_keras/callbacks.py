"""Callbacks, as bases beside Keras's own class Callback."""
import tensorflow as tf

from ..tensorflow import allreduce, broadcast_variables, rank, size
from ..tensorflow.functions import variables_of


def _number_of(variable):
    return float(tf.convert_to_tensor(variable))


class BroadcastGlobalVariables:
    """After the first batch, when the optimizer has its variables, all ranks take those of root_rank."""

    def __init__(self, root_rank, device="", local_variables=None):
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.broadcast_done = False
        self._local = {id(variable) for variable in local_variables or ()}

    def register_local_var(self, var):
        """That variable stays this rank's own."""
        self._local.add(id(var))

    def on_batch_end(self, batch, logs=None):
        if self.broadcast_done:
            return
        with tf.device(self.device):
            # Not `variables`: in Keras 3 these have metrics and seeds, which are the rank's own.
            broadcast_variables([one for one in self.model.weights if id(one) not in self._local], self.root_rank)
            broadcast_variables(variables_of(self.model.optimizer), self.root_rank)
        self.broadcast_done = True


class MetricAverage:
    """At the end of an epoch: later callbacks see the averages over the ranks."""

    def __init__(self, device=""):
        super().__init__()
        self.device = device

    def on_epoch_end(self, epoch, logs=None):
        for metric, value in sorted((logs or {}).items()):
            logs[metric] = allreduce(tf.constant(value, tf.float64), name=f"metric {metric}").numpy()


class LearningRateSchedule:
    def __init__(self, initial_lr, multiplier, start_epoch=0, end_epoch=None, staircase=True, momentum_correction=True,
                 steps_per_epoch=None):
        super().__init__()
        if initial_lr is None:
            raise ValueError("Parameter `initial_lr` is required")
        self.initial_lr = initial_lr
        self.multiplier = multiplier if callable(multiplier) else lambda epoch: multiplier ** (epoch - start_epoch)
        self.start_epoch, self.end_epoch = start_epoch, end_epoch
        self.staircase = staircase
        self.momentum_correction = momentum_correction
        self.steps_per_epoch = steps_per_epoch
        self.current_epoch = None
        self._momentum = None

    def on_train_begin(self, logs=None):
        if not self.staircase and not self.steps_per_epoch:
            self.steps_per_epoch = self.params.get("steps")
            if not self.steps_per_epoch:
                raise ValueError("Could not autodetect the number of steps per epoch. Please specify the steps_per_epoch "
                                 f"parameter to the {type(self).__name__}()")

    def on_epoch_begin(self, epoch, logs=None):
        self.current_epoch = epoch

    def on_batch_begin(self, batch, logs=None):
        if self.current_epoch < self.start_epoch or (self.end_epoch is not None and self.current_epoch >= self.end_epoch):
            return
        if not self.staircase:
            self._adjust(self.current_epoch + float(batch) / self.steps_per_epoch)
        elif batch == 0:
            self._adjust(self.current_epoch)

    def _adjust(self, epoch):
        optimizer = self.model.optimizer
        before = _number_of(optimizer.learning_rate)
        now = self.initial_lr * self.multiplier(epoch)
        optimizer.learning_rate = now
        momentum = getattr(optimizer, "momentum", None)
        # A momentum that is a number is a constant of the compiled step: it can't be corrected.
        if self.momentum_correction and hasattr(momentum, "assign") and before:
            self._momentum = _number_of(momentum)
            momentum.assign(self._momentum * now / before)

    def on_batch_end(self, batch, logs=None):
        if self._momentum:
            self.model.optimizer.momentum.assign(self._momentum)
            self._momentum = None

    def on_epoch_end(self, epoch, logs=None):
        if logs is not None:
            logs["lr"] = _number_of(self.model.optimizer.learning_rate)


class LearningRateWarmup(LearningRateSchedule):
    """From the rate of one rank to that of all: initial_lr / size to initial_lr, within warmup_epochs."""

    def __init__(self, initial_lr, warmup_epochs=5, momentum_correction=True, steps_per_epoch=None, verbose=0):
        def multiplier(epoch):
            epoch += 1.0 / self.steps_per_epoch  # round numbers at the end of each epoch
            return 1.0 / size() * (epoch * (size() - 1) / warmup_epochs + 1)

        super().__init__(initial_lr, multiplier, 0, warmup_epochs, False, momentum_correction, steps_per_epoch)
        self.verbose = verbose

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        if epoch == self.end_epoch - 1 and self.verbose > 0 and rank() == 0:
            print(f"\nEpoch {epoch + 1}: finished gradual learning rate warmup to "
                  f"{_number_of(self.model.optimizer.learning_rate):g}.")


class CommitState:
    """Commits the state after every batches_per_commit batches."""

    def __init__(self, state, batches_per_commit=1):
        super().__init__()
        self._state = state
        self._every = batches_per_commit
        self._left = batches_per_commit

    def on_batch_end(self, batch, logs=None):
        self._left -= 1
        if self._left == 0:
            self._state.commit()
            self._left = self._every

    def on_epoch_end(self, epoch, logs=None):
        self._state.commit()


class UpdateBatchState:
    """Keeps the number of the batch in the state, and shortens the epoch that was begun before."""

    def __init__(self, state):
        super().__init__()
        self._state = state
        self._steps = None

    def on_epoch_begin(self, epoch, logs=None):
        if self.params.get("steps"):
            self._steps = self._steps or self.params["steps"]
            self.params["steps"] = self._steps - self._state.batch

    def on_batch_end(self, batch, logs=None):
        self._state.batch = batch

    def on_epoch_end(self, epoch, logs=None):
        self._state.batch = 0


class UpdateEpochState:
    """Keeps the number of the epoch in the state."""

    def __init__(self, state):
        super().__init__()
        self._state = state
        self._first = state.epoch

    def on_train_begin(self, logs=None):
        self._first = self._state.epoch

    def on_epoch_end(self, epoch, logs=None):
        self._state.epoch = self._first + epoch + 1
