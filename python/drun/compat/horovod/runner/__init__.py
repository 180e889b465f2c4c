"""horovod.run: a function in every rank of a job that drun starts."""
import os
import shutil
import subprocess
import sys
import tempfile

# Options of Horovod that mean nothing here: how its own launcher and controller work.
_IGNORED = {"disable_cache", "use_gloo", "use_mpi", "mpi_args", "verbose"}
_ELASTIC = {"min_num_proc", "max_num_proc", "slots", "reset_limit", "cooldown_range", "host_discovery_script", "min_np", "max_np"}


def run(func, args=(), kwargs=None, num_proc=1, hosts=None, hostfile=None, start_timeout=None, ssh_port=None,
        ssh_identity_file=None, output_filename=None, network_interface=None, network_interfaces=None, executable=None,
        np=None, **others):
    """Calls func(*args, **kwargs) in num_proc ranks, and returns their results by rank. Rank 0 writes these to a temporary
    folder of this host, so this host, or one that shares the folder, must be the first of the hosts."""
    for name, value in others.items():
        if name in _ELASTIC and value is not None:
            raise ValueError(f"run({name}=...): a job of drun has the ranks that it began with")
        if name not in _IGNORED | _ELASTIC:
            raise TypeError(f"run() got an unexpected keyword argument '{name}'")
    pickler = _pickler()
    if func.__module__ == "__main__" and pickler.__name__ == "pickle":
        raise RuntimeError("a function of the main script travels with cloudpickle: pip install cloudpickle")
    drun = shutil.which("drun") or os.environ.get("DRUN_COMMAND")
    if drun is None:
        raise RuntimeError("horovod.run starts its ranks with drun, which is not in PATH")
    options = {"--hostfile": hostfile, "-H": hosts, "--start-timeout": start_timeout, "-p": ssh_port, "-i": ssh_identity_file,
               "--output-filename": output_filename, "--network-interfaces": network_interfaces or network_interface}
    with tempfile.TemporaryDirectory(prefix="horovod-run-") as folder:
        command = [drun, "run", "--compat", "horovod", "--stdin", "all", "-np", str(np or num_proc)]
        for option, value in options.items():
            if value is not None:
                command += [option, ",".join(value) if isinstance(value, (list, tuple)) else str(value)]
        command += [executable or sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "task.py"), folder]
        call = pickler.dumps((func, tuple(args), kwargs or {}))
        status = subprocess.run(command, input=call, check=False).returncode
        if status != 0:
            raise RuntimeError(f"the job of horovod.run failed with status {status}")
        with open(os.path.join(folder, "results"), "rb") as file:
            return pickler.loads(file.read())


def _pickler():
    try:
        import cloudpickle

        return cloudpickle
    except ImportError:
        import pickle

        return pickle
