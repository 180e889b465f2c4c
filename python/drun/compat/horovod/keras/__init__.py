"""horovod.keras over drun: for the package keras."""
import keras

from .._keras.frontend import *  # noqa: F401,F403
from .._keras.frontend import load_model_of
from . import callbacks, elastic  # noqa: F401

load_model = load_model_of(keras)
