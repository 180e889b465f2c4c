"""Not there."""
raise ImportError("horovod.keras: drun has no frontend for Keras yet: a job of PyTorch imports horovod.torch")
