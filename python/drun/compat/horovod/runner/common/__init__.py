"""Parts of horovod.runner that scripts import."""
