"""Arguments that Keras 3 no longer has, and that scripts for Horovod still give."""
import functools


def accept_old_arguments(keras):
    """`keras` is the package keras or tf.keras; only Keras 3 is changed, in this process. An optimizer's `lr` is its
    learning rate. compile() ignores `experimental_run_tf_function`, by which TensorFlow 2.0 was told to call the
    optimizer. Other unknown arguments stay errors."""
    if not getattr(keras, "__version__", "2").startswith("3"):
        return
    from keras.src.optimizers.base_optimizer import BaseOptimizer
    from keras.src.trainers.trainer import Trainer

    compile_model, make_optimizer = Trainer.compile, BaseOptimizer.__init__
    if getattr(compile_model, "_is_of_drun", False):
        return

    @functools.wraps(compile_model)
    def compile(self, *args, experimental_run_tf_function=None, **kwargs):
        return compile_model(self, *args, **kwargs)

    @functools.wraps(make_optimizer)
    def __init__(self, learning_rate, *args, lr=None, **kwargs):
        make_optimizer(self, learning_rate if lr is None else lr, *args, **kwargs)

    compile._is_of_drun = True
    Trainer.compile, BaseOptimizer.__init__ = compile, __init__
