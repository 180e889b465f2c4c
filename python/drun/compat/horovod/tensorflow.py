"""Not there."""
raise ImportError("horovod.tensorflow: drun has no frontend for TensorFlow yet: a job of PyTorch imports horovod.torch")
