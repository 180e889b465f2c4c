"""The tables of the measurements, as Markdown. Pure functions of the data that the scripts of perf/ write."""
import statistics
import textwrap

from .launchers import DRUN, FLOOR, SSH

WIDTH = 120  # columns of prose
# The key of each benchmark's figures, and the contender to which others are compared.
FIGURES = {"start": ("seconds", FLOOR), "cold": ("seconds", FLOOR), "ending": ("seconds", DRUN), "output": ("lines_per_s", DRUN),
           "stdin": ("mb_per_s", SSH)}


def medians(name, data):
    """Maps (hosts, contender) to the median of its rounds; contenders that came up short are absent."""
    key = FIGURES[name][0]
    return {(row.get("hosts", data["hosts"]), row["what"]): statistics.median(row[key])
            for row in data["rows"] if "failed" not in row}


def ratios(name, data):
    """Maps (hosts, contender) to its median divided by that of the contender to which all are compared."""
    found, base = medians(name, data), FIGURES[name][1]
    return {(hosts, what): value / found[hosts, base] for (hosts, what), value in found.items() if (hosts, base) in found}


def table(head, rows):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])


def spread(values, digits=2, scale=1):
    """The range of the rounds."""
    return f"{min(values) / scale:.{digits}f}-{max(values) / scale:.{digits}f}"


def shortfalls(data):
    """A list of the contenders without figures, as paragraphs of at most one."""
    items = []
    for row in data["rows"]:
        if "failed" in row:
            on = f" on {row['hosts']} hosts" if "hosts" in row else ""
            reason = row["failed"].replace("`", "'").replace("\\", "/")
            items.append(textwrap.fill(f"- {row['what']}{on}: `{reason}`", WIDTH, subsequent_indent="  ", break_long_words=False,
                                       break_on_hyphens=False))
    return ["No figure for these, which came up short:\n\n" + "\n".join(items)] if items else []


def start(data):
    relative, cells = ratios("start", data), {}
    for row in data["rows"]:
        key = row["hosts"], row["what"]
        cells[key] = "short"
        if key in relative:
            cells[key] = f"{statistics.median(row['seconds']):.2f} ({spread(row['seconds'])}), {relative[key]:.2f}"
    largest = {row["what"]: row for row in data["rows"] if row["hosts"] == max(data["hosts"])}
    has_memory = any("mib" in row for row in largest.values())
    head = ["launcher", *(f"{n} hosts" for n in data["hosts"]), *(["processor s", "MiB"] if has_memory else [])]
    rows = []
    for what, row in largest.items():
        rest = [f"{statistics.median(row['processor']):.2f}" if "processor" in row else "", str(row.get("mib") or "")]
        rows.append([what, *(cells[n, what] for n in data["hosts"]), *(rest if has_memory else [])])
    return [table(head, rows), *shortfalls(data)]


def ending(data):
    relative = ratios("ending", data)
    rows = [[row["what"], f"{statistics.median(row['seconds']):.2f}", spread(row["seconds"]),
             f"{relative[data['hosts'], row['what']]:.1f}"] for row in data["rows"] if "failed" not in row]
    return [table(["launcher", "median s", "range s", "relative to drun"], rows), *shortfalls(data)]


def output(data):
    relative, rows = ratios("output", data), []
    for row in data["rows"]:
        if "failed" not in row:
            rate = statistics.median(row["lines_per_s"])
            rows.append([row["what"], f"{rate / 1e6:.2f} M", f"{rate * data['line_bytes'] / 1e6:.0f}",
                         f"{spread(row['lines_per_s'], scale=1e6)} M", f"{row['lines'][0] / 1e6:.1f} M",
                         f"{relative[data['hosts'], row['what']]:.2f}"])
    memory = " and ".join(f"{program} {mib:.1f} MiB" for program, mib in data["memory"].items())
    text = f"While drun's stdout was not read for {data['unread_s']} s, the peak of the memory was: {memory}."
    return [table(["launcher", "lines/s", "MB/s", "range lines/s", "lines", "relative to drun"], rows),
            *shortfalls(data), textwrap.fill(text, WIDTH)]


def stdin(data):
    relative = ratios("stdin", data)
    rows = [[row["what"], f"{statistics.median(row['mb_per_s']):.0f}", spread(row["mb_per_s"], 0), f"{row['mb'][0]:.0f}",
             f"{relative[data['hosts'], row['what']]:.2f}"] for row in data["rows"] if "failed" not in row]
    return [table(["command", "MB/s", "range MB/s", "MB", "relative to ssh"], rows), *shortfalls(data)]


def check(data):
    rows = [[row["what"], str(row["hosts"]), f"{statistics.median(row['seconds']):.1f}", spread(row["seconds"], 1),
             f"{statistics.median(row['processor']):.2f}", f"{statistics.median(row['warnings']):.0f}"]
            for row in data["rows"] if "failed" not in row]
    return [table(["command", "hosts", "median s", "range s", "processor s of the head", "warnings"], rows), *shortfalls(data)]


TABLES = {"check": check, "start": start, "cold": start, "ending": ending, "output": output, "stdin": stdin}
