"""GPU memory, with stand-ins for NVIDIA's driver and NCCL, so that no GPU is needed."""
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

DRUN = os.path.join(os.environ["DRUN_BIN_DIR"], "drun")
FAKES = os.path.join(os.environ["DRUN_BUILD_DIR"], "tests", "fakes")

# An array like CuPy's, with the attributes that drun reads. The CPU can't access its memory.
ARRAY = """
    import ctypes, math, os, struct, sys
    sys.path.insert(0, os.environ["PYTHONPATH"].split(":")[0])
    cuda = ctypes.CDLL(os.path.join(os.environ["FAKES"], "libcuda.so.1"))
    cuda.fake_inside.restype = ctypes.c_void_p
    cuda.fake_inside.argtypes = [ctypes.c_void_p]
    cuda.fake_wait.argtypes = [ctypes.c_void_p]

    class Array:
        def __init__(self, values, shape=None, strides=None, read_only=False):
            pointer = ctypes.c_uint64()
            assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4 * max(1, len(values)))) == 0
            self.n, self.pointer = len(values), pointer.value
            data = struct.pack(f"{self.n}f", *values)
            ctypes.memmove(cuda.fake_inside(self.pointer), data, len(data))
            self.__cuda_array_interface__ = {
                "shape": shape or (self.n,), "typestr": "<f4", "data": (self.pointer, read_only), "version": 3,
                "strides": strides, "stream": 77}

        def values(self):
            assert cuda.fake_wait(77) == 1
            return list(struct.unpack(f"{self.n}f", ctypes.string_at(cuda.fake_inside(self.pointer), 4 * self.n)))

    import drun as hvd
"""


class Gpu(unittest.TestCase):
    def job(self, size, script, status=0, **environment):
        command = [sys.executable, "-c", textwrap.dedent(ARRAY) + textwrap.dedent(script)]
        env = {**os.environ, "FAKES": FAKES, **environment}
        done = subprocess.run([DRUN, "-np", str(size), "-H", f"localhost:{size}", *command], stdin=subprocess.DEVNULL,
                              env=env, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def test_collectives_through_the_host_where_there_is_no_gpu(self):
        _, err = self.job(2, """
            hvd.init()
            data = Array([1.0 + hvd.rank(), 10.0])
            hvd.allreduce_(data, op=hvd.Sum)
            assert data.values() == [3, 20], data.values()
            other = Array([float(hvd.rank())] * 3)
            hvd.broadcast_(other, root_rank=1)
            assert other.values() == [1, 1, 1]
            several = [Array([1.0]), Array([2.0, 3.0])]
            hvd.grouped_allreduce_(several, op=hvd.Average)
            assert several[1].values() == [2, 3]
            hvd.shutdown()
        """, DRUN_GPU="0")
        self.assertRegex(err, r"drun: warning: data of GPUs goes through the host, which is slow: rank 0 on \S+ has no GPU \(DRUN_GPU=0\)")
        self.assertEqual(err.count("through the host"), 1, err)

    def test_nccl_where_there_is_one(self):
        out, err = self.job(1, """
            hvd.init()
            print("nccl", hvd.nccl_built())
            data = Array([1.0, 10.0])
            handle = hvd.allreduce_async_(data, op=hvd.Sum, postscale_factor=2.0)
            assert hvd.synchronize(handle) is data
            assert cuda.fake_pinned_blocks() == 0  # not through the host
            assert data.values() == [2, 20], data.values()
            hvd.shutdown()
        """, DRUN_GPU="1", DRUN_NCCL_LIB=os.path.join(FAKES, "libnccl.so.2"))
        self.assertIn("nccl 22809", out)
        self.assertEqual(err, "")

    def test_a_stream_is_waited_for_with_what_became_of_its_calls(self):
        self.job(1, """
            import time
            cuda.fake_block.argtypes = [ctypes.c_void_p, ctypes.c_int]
            hvd.init()
            hvd.synchronize_stream(0)  # there is nothing in it
            data = Array([1.0, 10.0])
            hvd.allreduce_(data, op=hvd.Sum)
            class OfTorch:
                cuda_stream = 77
            class OfCupy:
                ptr = 77
            for stream in (77, OfTorch(), OfCupy()):
                cuda.fake_block(77, 200)
                hvd.allreduce_(data, op=hvd.Sum, postscale_factor=2.0)
                hvd.synchronize_stream(stream)
                assert cuda.fake_is_done(ctypes.c_void_p(77)) == 1
            assert data.values() == [8, 80], data.values()

            def refused(code, word, **how):
                try:
                    hvd.synchronize_stream(77, **how)
                except hvd.DrunError as error:
                    assert error.status == code and word in str(error), (error.status, error)
                else:
                    raise AssertionError(word)
            cuda.fake_block(77, 2000)
            hvd.allreduce_(data, op=hvd.Sum, name="grad.17")
            began = time.monotonic()
            refused(hvd.ERROR_TIMEOUT, "still has work after 200 ms; under way over NCCL: allreduce #5 'grad.17'", timeout=0.2)
            assert time.monotonic() - began < 1.5
            cuda.fake_capture(1)
            refused(hvd.ERROR_STATE, "is being captured")
            cuda.fake_capture(0)
            hvd.synchronize_stream(77)  # the job goes on
            assert cuda.fake_is_done(ctypes.c_void_p(77)) == 1
            hvd.shutdown()
            refused(hvd.ERROR_STATE, "drun_init was not called")
        """, DRUN_GPU="1", DRUN_NCCL_LIB=os.path.join(FAKES, "libnccl.so.2"))

    def test_a_failure_in_a_stream_is_told_at_its_end_or_at_that_of_the_job(self):
        """The call has returned long ago, the stream continues because NCCL was aborted, and nothing else is called."""
        for end in ("hvd.synchronize_stream(77)", "hvd.shutdown()"):
            out, _ = self.job(1, f"""
                cuda.fake_block.argtypes = [ctypes.c_void_p, ctypes.c_int]
                hvd.init()
                data = Array([1.0])
                cuda.fake_block(77, 1000)
                hvd.allreduce_(data, op=hvd.Sum)
                assert cuda.fake_wait(77) == 1
                try:
                    {end}
                except hvd.DrunError as error:
                    print("told", error)
                hvd.shutdown()  # once is enough
            """, DRUN_GPU="1", DRUN_NCCL_LIB=os.path.join(FAKES, "libnccl.so.2"), DRUN_FAKE_NCCL="late-error")
            self.assertIn("told", out, end)
            self.assertIn("remote process exited or there was a network error", out, end)

    def test_a_rank_that_has_joined_gives_zeros_on_its_gpu(self):
        """NCCL would wait for ever for a rank that gives memory of the host."""
        with tempfile.TemporaryDirectory() as folder:
            self.job(2, """
                import contextlib, types
                os.environ["NCCL_HOSTID"] = os.environ["DRUN_RANK"]
                hvd.init(join=True, op_timeout=10)
                rank = hvd.rank()
                made = []
                if rank == 0:
                    cupy = sys.modules["cupy"] = types.ModuleType("cupy")
                    cupy.ndarray = type("ndarray", (), {})
                    cupy.cuda = types.SimpleNamespace(Device=lambda number=0: contextlib.nullcontext(number))
                    cupy.zeros = lambda n, dtype: made.append((n, dtype)) or Array([0.0] * (n // 4))
                else:
                    for op, factor, expected in ((hvd.Average, 1.0, 1.5), (hvd.Sum, 1.0, 3.0), (hvd.Average, 4.0, 6.0)):
                        data = Array([3.0] * 8)
                        hvd.allreduce_(data, op=op, postscale_factor=factor)
                        assert data.values() == [expected] * 8, data.values()
                    assert hvd.allreduce(bytearray(b"ab"), op=hvd.Sum) == b"ab"  # memory of the host, in between
                assert hvd.join() == 1
                assert cuda.fake_pinned_blocks() == 0  # nothing went through the host
                assert made == ([(32, "uint8")] * 3 if rank == 0 else []), made
                hvd.shutdown()
            """, DRUN_GPU="1", DRUN_NCCL_LIB=os.path.join(FAKES, "libnccl.so.2"), DRUN_FAKE_NCCL_FOLDER=folder)

    def test_a_rank_that_has_joined_makes_zeros_by_the_library_of_its_last_tensor(self):
        with tempfile.TemporaryDirectory() as folder:
            self.job(2, """
                import types
                os.environ["NCCL_HOSTID"] = os.environ["DRUN_RANK"]
                hvd.init(join=True, op_timeout=10)
                made = []
                library = types.SimpleNamespace(
                    uint8="a byte",
                    zeros=lambda n, dtype, device: made.append((n, dtype, device)) or Array([0.0] * (n // 4)))

                class Shared:
                    device = "GPU 3"

                    def __array_namespace__(self):
                        return library

                sys.modules["cupy"] = types.ModuleType("cupy")
                cupy = sys.modules["cupy"]
                cupy.ndarray = type("ndarray", (), {})
                cupy.cuda = types.SimpleNamespace(Device=None)  # is not asked
                data = Array([3.0] * 8)
                hvd.allreduce_(data, op=hvd.Average)
                if hvd.rank() == 1:
                    hvd.allreduce_(data, op=hvd.Average)
                    assert data.values() == [1.5] * 8, data.values()
                hvd._join.note_device(Shared())
                assert hvd.join() == 1
                assert made == ([(32, "a byte", "GPU 3")] if hvd.rank() == 0 else []), made
                hvd.shutdown()
            """, DRUN_GPU="1", DRUN_NCCL_LIB=os.path.join(FAKES, "libnccl.so.2"), DRUN_FAKE_NCCL_FOLDER=folder)

    def test_a_rank_that_has_joined_without_a_library_for_gpus(self):
        self.job(2, """
            os.environ["NCCL_HOSTID"] = os.environ["DRUN_RANK"]
            hvd.init(join=True, op_timeout=10)
            try:
                if hvd.rank() == 0:
                    hvd.join()
                else:
                    hvd.allreduce_(Array([3.0]), op=hvd.Average)
                assert False
            except hvd.DrunError as error:
                assert error.status == hvd.ERROR_UNSUPPORTED, error
                assert "rank 0 has joined and can't make zeros in a GPU's memory" in str(error), error
                os._exit(0)
        """, DRUN_GPU="1", DRUN_NCCL_LIB=os.path.join(FAKES, "libnccl.so.2"))

    def test_a_stream_that_waits_for_a_rank_names_it(self):
        with tempfile.TemporaryDirectory() as folder:
            out, _ = self.job(2, """
                import time
                os.environ["NCCL_HOSTID"] = os.environ["DRUN_RANK"]
                hvd.init(op_timeout=2)
                data = Array([1.0])
                hvd.allreduce_(data, op=hvd.Sum)
                hvd.synchronize_stream(77)
                if hvd.rank() == 0:
                    hvd.allreduce_(data, op=hvd.Sum)
                began = time.monotonic()
                while True:
                    try:
                        hvd.synchronize_stream(77, timeout=60)
                    except hvd.DrunError as error:
                        print(f"rank {hvd.rank()}: {error.rank}: {error}", flush=True)
                        break
                    assert hvd.rank() == 1 and time.monotonic() - began < 20  # it has nothing in its own
                assert time.monotonic() - began < 20
                hvd.shutdown()
            """, DRUN_GPU="1", DRUN_NCCL_LIB=os.path.join(FAKES, "libnccl.so.2"), DRUN_FAKE_NCCL_FOLDER=folder)
        for rank in (0, 1):
            self.assertRegex(out, rf"rank {rank}: 1: .*allreduce #2 timed out after 2 s waiting for rank 1")

    def test_the_hook_of_torch_s_ddp_keeps_the_backward_pass_free(self):
        """torch is the CPU build: its GPU streams are numbers of this driver's streams."""
        self.job(1, """
            import contextlib, threading, torch
            import drun.torch
            cuda.fake_block.argtypes = [ctypes.c_void_p, ctypes.c_int]
            log, local = [], threading.local()

            class Stream:
                def __init__(self, device=None, priority=0, cuda_stream=None):
                    assert (device, priority) == (torch.device("cuda", 0), -1) or cuda_stream
                    self.cuda_stream = cuda_stream or 500
                def wait_stream(self, other):
                    log.append(("wait", self.cuda_stream, other.cuda_stream))
            backward = Stream(cuda_stream=77)

            @contextlib.contextmanager
            def on_stream(stream):
                local.stream, before = stream, current()
                yield
                local.stream = before
            def current(device=None):
                return getattr(local, "stream", None) or Stream(cuda_stream=1)

            class Future:
                def __init__(self, devices=None):
                    self.devices, self.done = devices, threading.Event()
                def set_result(self, result):
                    self.result, self.stream = result, current().cuda_stream
                    self.done.set()
                def set_exception(self, error):
                    self.result = error
                    self.done.set()
            torch.cuda.Stream, torch.cuda.stream, torch.cuda.current_stream = Stream, on_stream, current
            torch.futures.Future = Future

            class OnGpu(torch.Tensor):
                device, is_cuda = torch.device("cuda", 0), True
                def data_ptr(self):
                    return array.pointer
                def record_stream(self, stream):
                    log.append(("record", stream.cuda_stream))
            class Bucket:
                def index(self):
                    return 3
                def buffer(self):
                    return tensor

            hvd.init()
            array = Array([4.0, 6.0])
            tensor = torch.zeros(2).as_subclass(OnGpu)
            hvd.allreduce_(array)  # sets NCCL up
            assert cuda.fake_wait(77) == 1
            for _ in range(2):
                log.clear()
                cuda.fake_block(500, 1000)  # the call's stream is busy; the backward pass's is not
                with on_stream(backward):
                    future = drun.torch.ddp_hook(None, Bucket())
                assert future.done.wait(20)
                assert future.devices == [torch.device("cuda", 0)], future.devices
                assert future.result is tensor and future.stream == 500, (future.result, future.stream)
                assert log == [("wait", 500, 77), ("record", 500)], log
                assert cuda.fake_is_done(ctypes.c_void_p(77)) == 1
                assert cuda.fake_wait(500) == 1
                assert array.values() == [4, 6]
            hvd.shutdown()
        """, DRUN_GPU="1", DRUN_NCCL_LIB=os.path.join(FAKES, "libnccl.so.2"))

    def test_dlpack_is_taken_in_the_order_of_the_legacy_default_stream(self):
        self.job(1, """
            from drun import _dlpack
            new_capsule = ctypes.pythonapi.PyCapsule_New
            new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

            class Shared:
                def __init__(self, array):
                    self.array, self.asked, self.shape = array, [], (ctypes.c_int64 * 1)(array.n)
                    self.managed = _dlpack._DLManagedTensorVersioned(major=1)
                    self.managed.tensor = _dlpack._DLTensor(data=array.pointer, device_type=2, ndim=1, code=2, bits=32, lanes=1,
                                                            shape=self.shape)

                def __dlpack_device__(self):
                    return (2, 0)

                def __dlpack__(self, stream=None, max_version=None):
                    self.asked.append(stream)
                    return new_capsule(ctypes.addressof(self.managed), b"dltensor_versioned", None)

            hvd.init()
            shared = Shared(Array([1.0, 10.0]))
            hvd.allreduce_(shared, op=hvd.Sum, postscale_factor=2.0)
            assert shared.asked == [1], shared.asked
            assert cuda.fake_wait(0) == 1
            assert shared.array.values() == [2, 20], shared.array.values()
            hvd.shutdown()
        """, DRUN_GPU="1", DRUN_NCCL_LIB=os.path.join(FAKES, "libnccl.so.2"))

    def test_a_driver_that_is_too_old_is_said_to_be_and_processors_go_on(self):
        _, err = self.job(1, """
            import array
            hvd.init()
            data = array.array("f", [3.0])
            for _ in range(3):
                hvd.allreduce_(data, op=hvd.Sum, postscale_factor=2.0)
            assert list(data) == [24.0], data
            hvd.shutdown()
        """, FAKES=os.path.join(FAKES, "old"))
        self.assertEqual(err.count("libcuda.so.1) has no cuThreadExchangeStreamCaptureMode, so it is older than CUDA 10.1"), 1, err)

    def test_an_abort_that_hangs_ends_the_process_with_its_reason(self):
        _, err = self.job(1, """
            hvd.init(op_timeout=1)
            try:
                data = Array([1.0])
                cuda.setenv(b"DRUN_FAKE_CUDA", b"stuck", 1)
                hvd.allreduce_(data, op=hvd.Sum)
                hvd.shutdown()
            except hvd.DrunError as error:
                print("in vain", error)
        """, status=75, DRUN_GPU="1", DRUN_NCCL_LIB=os.path.join(FAKES, "libnccl.so.2"), DRUN_FAKE_NCCL="abort-hangs")
        self.assertRegex(err, r"drun: error: rank 0 on \S+: allreduce .*: ncclCommAbort has not come back for 10 s: ending this process")

    def test_what_can_not_be_taken_is_refused(self):
        self.job(1, """
            hvd.init()

            def refused(word, call):
                try:
                    call()
                except ValueError as error:
                    assert word in str(error), error
                else:
                    raise AssertionError(word)

            refused("not contiguous", lambda: hvd.allreduce_(Array([1.0] * 4, (2, 2), (4, 8))))
            refused("read-only", lambda: hvd.allreduce_(Array([1.0], read_only=True)))
            refused("in place", lambda: hvd.allreduce(Array([1.0])))
            hvd.allreduce_(Array([1.0] * 4, (2, 2), (8, 4)))
        """, DRUN_GPU="0")

    def test_no_nccl_is_version_0(self):
        out, _ = self.job(1, "print(hvd.nccl_built())", DRUN_NCCL_LIB="/no/such/libnccl.so.2")
        self.assertEqual(out.strip(), "0")
