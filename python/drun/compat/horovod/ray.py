"""Not there."""
raise ImportError("horovod.ray: drun starts the processes itself: run the script with drun --compat horovod")
