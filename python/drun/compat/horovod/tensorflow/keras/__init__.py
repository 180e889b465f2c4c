"""horovod.tensorflow.keras over drun: for tf.keras, be it Keras 3 or tf_keras."""
from tensorflow import keras

from ..._keras.frontend import *  # noqa: F401,F403
from ..._keras.frontend import load_model_of
from ..._keras.old_arguments import accept_old_arguments
from . import callbacks, elastic  # noqa: F401

accept_old_arguments(keras)
load_model = load_model_of(keras)
