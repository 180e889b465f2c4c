"""Not there."""
raise ImportError("horovod.spark: drun starts the processes itself: run the script with drun --compat horovod")
