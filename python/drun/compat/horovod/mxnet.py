"""Not there."""
raise ImportError("horovod.mxnet: MXNet is retired, and drun has no frontend for it")
