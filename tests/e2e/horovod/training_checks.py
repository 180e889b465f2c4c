"""Whether the output of rank 0 shows that an example trained: functions of its text, which give a summary or raise."""
import math
import re


class NotTrained(Exception):
    """The output does not show it; the text says why."""


def _numbers(pattern, text):
    found = [float(number) for number in re.findall(pattern, text)]
    if not found:
        raise NotTrained(f"no line like {pattern!r}")
    if not all(map(math.isfinite, found)):
        raise NotTrained(f"{pattern!r}: not all numbers are finite")
    return found


def _ends(numbers):
    """The means of the first and of the last tenth."""
    part = max(1, len(numbers) // 10)
    return sum(numbers[:part]) / part, sum(numbers[-part:]) / part


def loss_falls(pattern, to=0.8):
    """The last losses are below `to` of the first ones."""
    def check(text):
        first, last = _ends(_numbers(pattern, text))
        if not last < to * first:
            raise NotTrained(f"loss {first:.3g} to {last:.3g}")
        return f"loss {first:.3g} to {last:.3g}"
    return check


def accuracy_reaches(pattern, percent):
    def check(text):
        first, last = _ends(_numbers(pattern, text))
        if last < percent:
            raise NotTrained(f"accuracy {last:.1f}, expected {percent}")
        return f"accuracy {last:.1f}" if first == last else f"accuracy {first:.1f} to {last:.1f}"
    return check


def speed_of(n_ranks):
    """A benchmark counted the ranks and measured a speed."""
    def check(text):
        if not re.search(rf"^Number of \wPUs: {n_ranks}$", text, re.MULTILINE):
            raise NotTrained(f"it did not count {n_ranks} ranks")
        speed = _numbers(rf"Total img/sec on {n_ranks} \wPU\(s\): ([0-9.]+)", text)[-1]
        if speed <= 0:
            raise NotTrained("the speed is 0")
        return f"{speed:.1f} pictures/s"
    return check


def says(pattern, but_not=None):
    """A line is there, another is not. The summary is the pattern's group, or the line."""
    def check(text):
        found = re.search(pattern, text, re.MULTILINE)
        if not found:
            raise NotTrained(f"no line like {pattern!r}")
        if but_not and re.search(but_not, text, re.MULTILINE):
            raise NotTrained(f"a line like {but_not!r}")
        return found[found.re.groups].strip()
    return check


def all_of(*checks):
    return lambda text: ", ".join(check(text) for check in checks)
