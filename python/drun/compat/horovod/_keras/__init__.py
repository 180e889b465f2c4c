"""The parts of horovod.keras and horovod.tensorflow.keras that are alike. Optimizers of Keras 2 (tf_keras) compute and
apply gradients in two steps, of which the first reduces them. In Keras 3 a model applies gradients only: there the step
reduces them."""
import functools

import tensorflow as tf

from ..tensorflow.aggregation import Aggregation
from ..tensorflow.compression import Compression
from ..tensorflow.functions import variables_of
from ..tensorflow.gradients import GradientReduction
from ..tensorflow.mpi_ops import Average, global_process_set
from .keras3 import prepare


class Distributed:
    """Before a class of optimizers in the list of bases. _hvd_options: the arguments of distributed_optimizer()."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        options = self._hvd_options
        name = options["name"] or f"Distributed{type(self).__name__}"
        reduce = GradientReduction(name, options["compression"], options["sparse_as_dense"], options["op"],
                                   options["predivide_factor"], options["process_set"], options["scale_local"])
        # Keras tracks what it finds in attributes: these stay out of that.
        self.__dict__["_hvd_reduce"] = reduce
        self.__dict__["_agg_helper"] = (Aggregation(options["passes"], reduce, options["is_averaged"])
                                        if options["passes"] > 1 else None)

    @property
    def process_set(self):
        return self._hvd_options["process_set"]

    def register_local_var(self, var):
        """Gradients of that variable stay this rank's own."""
        self._hvd_reduce.local.add(var)

    def _hvd_allreduce(self, gradients, variables):
        reduce = self._agg_helper.compute_gradients if self._agg_helper else self._hvd_reduce
        return reduce(list(gradients), list(variables))


class OfKeras2(Distributed):
    def _compute_gradients(self, loss, var_list, grad_loss=None, tape=None):
        base = super()
        if hasattr(base, "_compute_gradients"):
            pairs = base._compute_gradients(loss, var_list, grad_loss, tape=tape or _tape_for(loss))
        else:
            pairs = base.compute_gradients(loss, var_list, tape=tape or _tape_for(loss))
        gradients, variables = zip(*pairs)
        return list(zip(self._hvd_allreduce(gradients, variables), variables))

    def compute_gradients(self, loss, var_list, tape=None):
        return self._compute_gradients(loss, var_list, None, tape)

    def get_gradients(self, loss, params):
        return self._hvd_allreduce(super().get_gradients(loss, params), params)

    def apply_gradients(self, grads_and_vars, *args, **kwargs):
        pairs = list(grads_and_vars)
        apply = functools.partial(super().apply_gradients, pairs, *args, **kwargs)
        if not self._agg_helper:
            return apply()
        if hasattr(self, "build") and not getattr(self, "_built", True):
            with tf.init_scope():
                self.build([variable for _, variable in pairs])
        return self._agg_helper.apply_gradients(apply, lambda: self.iterations.assign_add(1))


def _tape_for(loss):
    """None if the loss has been computed: then the tape is the caller's."""
    return tf.GradientTape() if callable(loss) else None


def _n_given(gradients):
    return sum(one is not None for one in gradients)


class OfKeras3(Distributed):
    def _compute_gradients(self, loss, var_list, grad_loss=None, tape=None):
        if callable(loss):
            with tf.GradientTape() as tape:
                loss = loss()
        variables = list(var_list)
        gradients = tape.gradient(loss, [getattr(one, "value", one) for one in variables], grad_loss)
        reduced = self._hvd_allreduce(gradients, variables)
        self.__dict__["_hvd_n_reduced"] = _n_given(reduced)
        return list(zip(reduced, variables))

    def compute_gradients(self, loss, var_list, tape=None):
        return self._compute_gradients(loss, var_list, None, tape)

    def apply(self, grads, trainable_variables=None):
        if self.__dict__.get("_hvd_is_applying"):
            super().apply(grads, trainable_variables)
        else:
            self.apply_by(self, super().apply, grads, trainable_variables)

    def apply_by(self, outer, apply, grads, trainable_variables):
        """Reduces the gradients, and then has apply(gradients, variables) apply them. outer: the optimizer whose method that
        is: this one, or one around it, which calls apply() of this one."""
        variables = list(self._trainable_variables if trainable_variables is None else trainable_variables)
        grads = list(grads)
        if grads and not outer.built:
            with tf.init_scope():
                outer.build(variables)
        n_reduced = self.__dict__.pop("_hvd_n_reduced", None)  # by compute_gradients(): the caller may have clipped them
        if grads and n_reduced != _n_given(grads):
            grads = self._hvd_allreduce(grads, variables)
        step = functools.partial(apply, grads, variables)
        self.__dict__["_hvd_is_applying"] = True
        try:
            if self._agg_helper:
                self._agg_helper.apply_gradients(step, lambda: self.iterations.assign_add(1))
            else:
                step()
        finally:
            self.__dict__["_hvd_is_applying"] = False


def distributed_optimizer(optimizer, name=None, compression=Compression.none, sparse_as_dense=False, op=Average,
                          predivide_factor=1.0, passes=1, is_averaged=False, process_set=global_process_set, scale_local=True):
    """A new optimizer of the same class name and configuration, so that a saved model is restored without Horovod too."""
    own = type(optimizer)
    is_of_keras3 = any(base.__module__.startswith("keras.src") for base in own.__mro__) and hasattr(own, "apply")
    options = dict(name=name, compression=compression, sparse_as_dense=sparse_as_dense, op=op,
                   predivide_factor=predivide_factor, passes=passes, is_averaged=is_averaged, process_set=process_set,
                   scale_local=scale_local)
    if is_of_keras3:
        prepare(Distributed)
    cls = type(own.__name__, (OfKeras3 if is_of_keras3 else OfKeras2, own),
               {"__module__": own.__module__, "_hvd_options": options})
    return cls.from_config(optimizer.get_config())


def load_model(keras, filepath, custom_optimizers, custom_objects, compression):
    """The model, whose optimizer uses the gradients of all ranks."""
    objects = {cls.__name__: cls for cls in custom_optimizers or ()}
    objects.update(custom_objects or {})
    model = keras.models.load_model(filepath, custom_objects=objects)
    saved = model.optimizer
    if saved is None:
        return model
    optimizer = distributed_optimizer(saved, compression=compression)
    if hasattr(optimizer, "build"):
        optimizer.build(model.trainable_variables)
    else:  # one of tf_keras.optimizers.legacy
        for one in (optimizer, saved):
            one._create_all_weights(model.trainable_variables)
    for variable, value in zip(variables_of(optimizer), variables_of(saved)):
        variable.assign(value)
    model.optimizer = optimizer
    if hasattr(model, "jit_compile"):
        model.jit_compile = False
    return model
