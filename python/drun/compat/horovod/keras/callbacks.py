"""Callbacks of this frontend's Keras."""
import keras

from .._keras.frontend import Callbacks

_own = Callbacks(keras)
BroadcastGlobalVariablesCallback = _own.BroadcastGlobalVariablesCallback
MetricAverageCallback = _own.MetricAverageCallback
LearningRateScheduleCallback = _own.LearningRateScheduleCallback
LearningRateWarmupCallback = _own.LearningRateWarmupCallback
BestModelCheckpoint = _own.BestModelCheckpoint
