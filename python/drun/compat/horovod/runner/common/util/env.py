"""The place in the job, as the environment has it."""
import os


def get_env_rank_and_size():
    """(rank, size) before init(). Without a launcher (0, 1)."""
    return int(os.environ.get("HOROVOD_RANK", 0)), int(os.environ.get("HOROVOD_SIZE", 1))
