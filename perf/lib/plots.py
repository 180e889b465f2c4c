"""The pictures of docs/benchmarks.md, as SVG. The same data gives the same bytes with the same version of matplotlib."""
import os
import statistics

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot, ticker  # noqa: E402

from . import tables  # noqa: E402
from .launchers import CLUSH, DRUN, FLOOR, MPICH, OPENMPI, OPENSSH, PDSH, SCRIPT, SSH  # noqa: E402

# Okabe and Ito's colors, which color-blind people can tell apart; each launcher also has a marker of its own.
STYLES = {DRUN: ("#D55E00", "o"), OPENSSH: ("#E69F00", "s"), FLOOR: ("#000000", "None"), SCRIPT: ("#999999", "x"), SSH: ("#999999", "x"),
          OPENMPI: ("#0072B2", "^"), MPICH: ("#56B4E9", "v"), PDSH: ("#009E73", "D"), CLUSH: ("#CC79A7", "P")}
SETTINGS = {"svg.hashsalt": "drun", "svg.fonttype": "none", "font.size": 11, "axes.spines.top": False, "axes.spines.right": False,
            "figure.facecolor": "white", "savefig.facecolor": "white", "axes.axisbelow": True}
WIDTH_IN, DPI = 9, 100


def plain(value, _position=None):
    return f"{value:g}"


def save(figure, path):
    figure.savefig(path, dpi=DPI, metadata={"Date": None, "Creator": "perf/peers"})
    pyplot.close(figure)


def draw_start(axes, name, data):
    """A line for each launcher: time against hosts. A launcher that came up short has no point there."""
    medians = tables.medians(name, data)
    for what in sorted({what for _, what in medians}, key=list(STYLES).index):
        points = sorted((hosts, value) for (hosts, one), value in medians.items() if one == what)
        color, marker = STYLES[what]
        axes.plot(*zip(*points), color=color, marker=marker, label=what, zorder=4 if what == DRUN else 3,
                  linestyle="--" if what == FLOOR else "-", linewidth=3 if what == DRUN else 1.5, markersize=6)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(data["hosts"], minor=False)
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(plain))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    for locator in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        locator(ticker.FuncFormatter(plain))
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.grid(True, color="#dddddd", linewidth=0.8)
    axes.set_xlabel("hosts")


def start(benchmarks):
    figure, (warm, cold) = pyplot.subplots(1, 2, sharey=True, figsize=(WIDTH_IN, 5.4))
    figure.subplots_adjust(left=0.08, right=0.98, top=0.93, bottom=0.29, wspace=0.06)
    draw_start(warm, "start", benchmarks["start"])
    draw_start(cold, "cold", benchmarks["cold"])
    warm.set_title("drun's agent is on the hosts")
    cold.set_title("no agent on the hosts")
    warm.set_ylabel("seconds to run hostname on all hosts")
    figure.legend(*warm.get_legend_handles_labels(), loc="lower center", ncols=3, frameon=False)
    return figure


def bars(rows, key, label, scale=1, logarithmic=False):
    """A row for each launcher, drun first: the median, the range of the rounds, and the number. Logarithmic axes have no zero
    at which a bar could begin, so they have points."""
    rows = sorted(rows, key=lambda row: list(STYLES).index(row["what"]))
    figure, axes = pyplot.subplots(figsize=(WIDTH_IN, 0.9 + 0.45 * len(rows)), layout="constrained")
    values = [[value / scale for value in row.get(key, [])] for row in rows]
    largest = max(max(one) for one in values if one)
    for at, (row, one) in enumerate(zip(rows, values)):
        color = STYLES[row["what"]][0]
        if not one:
            axes.annotate("came up short, see below", (0, at), xycoords=("axes fraction", "data"), xytext=(6, 0),
                          textcoords="offset points", va="center", color="#555555", style="italic")
            continue
        middle = statistics.median(one)
        if logarithmic:
            axes.plot([middle], [at], marker="o", markersize=9, color=color)
        else:
            axes.barh(at, middle, height=0.6, color=color)
        axes.plot([min(one), max(one)], [at, at], color="#333333", linewidth=1.5)
        axes.annotate(f"{middle:.{0 if middle >= 20 else 2}f}", (max(one), at), xytext=(9, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(rows)), [row["what"] for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(label)
    axes.grid(True, axis="x", color="#dddddd", linewidth=0.8)
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(min(min(one) for one in values if one) / 1.6, largest * 2)
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(plain))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
    else:
        axes.set_xlim(0, largest * 1.12)
    return figure


def write(data, folder):
    """Writes the pictures into `folder`."""
    measured = data["benchmarks"]
    with matplotlib.rc_context(SETTINGS):
        save(start(measured), os.path.join(folder, "start.svg"))
        save(bars(measured["ending"]["rows"], "seconds", "seconds from the failure of a worker to the prompt (less is better)", logarithmic=True),
             os.path.join(folder, "ending.svg"))
        save(bars(measured["output"]["rows"], "lines_per_s", "million lines per second (more is better)", scale=1e6, logarithmic=True), os.path.join(folder, "output.svg"))
        save(bars(measured["stdin"]["rows"], "mb_per_s", "MB per second (more is better)"), os.path.join(folder, "stdin.svg"))
