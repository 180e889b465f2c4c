"""The machine code of the kernels: no spilled registers, enough loads in flight, and no arithmetic of f32 in double
precision, which takes 64 times as long on GeForce cards. DRUN_NVCC is nvcc with the options
of the build, separated by "|"; DRUN_KERNELS is kernels.cu. Loads are counted in the machine code by nvdisasm
(beside nvcc, in PATH, or from the Python package nvidia-cuda-nvdisasm), or without one in nvcc's PTX."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

NVCC = os.environ["DRUN_NVCC"].split("|")
KERNELS = os.environ["DRUN_KERNELS"]
ARCHITECTURES = (90, 120)

# Bytes in flight per thread: four loads of 16 bytes, except where a thread writes more than it reads (halves to f64):
# then the stores are in flight. Kernels that can't load neighbors together (other order of additions, random places)
# have eight loads of single elements.
FOUR_WIDE = 64
EXPECTED = {
    "widen_f64": 32, "begin_selection": 0, "add_dots": 24, "dots_f64": 128, "scatter_add": 56, "scatter_zero": 32,
}
MOST_REGISTERS = 64  # so that four blocks of 256 threads fit
# Kernels that look at all values of f32.
SINGLE = re.compile(r"drun_(count_tiles|take|collect|find_digit|narrow|widen|divide|scale|add)_f32")
DOUBLE_PTX = re.compile(r"\s*(?:@!?%\w+\s+)?(?:(?:setp|add|mul|div|abs)(?:\.\w+)*\.f64|cvt(?:\.\w+)*\.f64\.f32)\s")


def expected_of(kernel):
    name = kernel.removeprefix("drun_")
    return next((n for prefix, n in sorted(EXPECTED.items(), reverse=True) if name.startswith(prefix)), FOUR_WIDE)


def disassembler():
    beside = os.path.join(os.path.dirname(os.path.realpath(shutil.which(NVCC[0]) or NVCC[0])), "nvdisasm")
    installed = [path for folder in sys.path for path in glob.glob(os.path.join(folder, "nvidia/cu*/bin/nvdisasm"))]
    return next((path for path in (beside, shutil.which("nvdisasm"), *installed) if path and os.path.exists(path)), None)


def code_of(lines, kernel_at, operation):
    """For each kernel its loads as bytes, with None for whatever ends a sequence: stores, atomics, branches, labels."""
    kernels, current = {}, []
    for line in lines:
        begins = kernel_at.match(line)
        if begins:
            current = kernels.setdefault(begins[1], [])
        for one in operation(line):
            current.append(one)
    return kernels


def in_flight(loads):
    best = total = 0
    for n_bytes in loads:
        total = 0 if n_bytes is None else total + n_bytes
        best = max(best, total)
    return best


ENTRY = re.compile(r".*\.entry (\w+)\(")
SASS = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]+)")


def of_sass(line):
    if re.match(r"\s*\.L_", line):
        return [None]
    found = SASS.match(line)
    if not found:
        return []
    name, *parts = found[1].split(".")
    if name in ("LD", "LDG"):
        sizes = {"256": 32, "128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}
        return [next((sizes[part] for part in parts if part in sizes), 4)]
    return [None] if re.match(r"ST|ATOM|RED|BRA|BAR|EXIT|CALL|RET|BSYNC|WARPSYNC|LDS", name) else []


def of_ptx(line):
    line = line.strip()
    if re.match(r"\$\w+:", line):
        return [None]
    found = re.match(r"(?:@!?%\w+\s+)?(\w+)((?:\.\w+)*)", line)
    if not found:
        return []
    name, parts = found[1], found[2].split(".")
    if name == "ld" and not {"param", "shared", "const", "local"} & set(parts):
        count = next((int(part[1:]) for part in parts if re.fullmatch(r"v[248]", part)), 1)
        return [count * int(re.search(r"\d+$", parts[-1])[0]) // 8]
    is_end = name in ("st", "atom", "red", "bra", "bar", "barrier", "call", "ret", "membar", "fence") or name == "ld" and "shared" in parts
    return [None] if is_end else []


class Code(unittest.TestCase):
    def check_precision(self, lines, architecture):
        found = code_of(lines, ENTRY, lambda line: [line.strip()] if DOUBLE_PTX.match(line) else [])
        single = {kernel: code for kernel, code in found.items() if SINGLE.match(kernel)}
        self.assertEqual(len(single), 12, sorted(single))
        for kernel, code in single.items():
            self.assertEqual(code, [], f"sm_{architecture}: {kernel} computes in double precision")

    def check(self, architecture):
        with tempfile.TemporaryDirectory() as folder:
            cubin, ptx = os.path.join(folder, "cubin"), os.path.join(folder, "ptx")
            result = subprocess.run([*NVCC, "-cubin", f"-arch=sm_{architecture}", "-Xptxas=-v", "-o", cubin, KERNELS],
                                    capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(result.returncode, 0, result.stderr)
            used = re.findall(r"entry function '(\w+)'.*?(\d+) bytes spill stores.*?Used (\d+) registers", result.stderr, re.DOTALL)
            self.assertGreater(len(used), 40)
            for kernel, spilled, registers in used:
                self.assertEqual(int(spilled), 0, f"sm_{architecture}: {kernel} spills")
                self.assertLessEqual(int(registers), MOST_REGISTERS, f"sm_{architecture}: {kernel}")
            subprocess.run([*NVCC, "-ptx", f"-arch=sm_{architecture}", "-o", ptx, KERNELS], check=True, timeout=60)
            with open(ptx, encoding="ascii") as file:
                lines = file.readlines()
            self.check_precision(lines, architecture)
            tool = disassembler()
            if tool:
                text = subprocess.run([tool, "-c", cubin], capture_output=True, text=True, check=True, timeout=60).stdout
                kernels = code_of(text.splitlines(), re.compile(r"\.text\.(\w+):"), of_sass)
            else:
                print(f"no nvdisasm: sm_{architecture}'s loads are counted in PTX", flush=True)
                kernels = code_of(lines, ENTRY, of_ptx)
            self.assertEqual(sorted(kernels), sorted(kernel for kernel, _, _ in used))
            for kernel, loads in kernels.items():
                self.assertGreaterEqual(in_flight(loads), expected_of(kernel), f"sm_{architecture}: bytes in flight in {kernel}")

    def test_of_each_architecture(self):
        known = subprocess.run([NVCC[0], "--list-gpu-code"], capture_output=True, text=True, check=True, timeout=60).stdout
        architectures = [one for one in ARCHITECTURES if f"sm_{one}\n" in known]
        self.assertTrue(architectures)
        for architecture in architectures:
            self.check(architecture)


if __name__ == "__main__":
    unittest.main()
