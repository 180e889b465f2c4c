"""The parts of README.md and docs/benchmarks.md that come from docs/benchmarks/peers.json. A part stands between two
comments, with text around it that is written by hand:

    <!-- begin NAME: perf/peers --render writes this -->
    <!-- end NAME -->
"""
import json
import os
import re
import textwrap

from . import tables
from .cluster import ROOT
from .launchers import CLUSH, DRUN, MPICH, OPENMPI, PDSH, SCRIPT, SSH

DATA = "docs/benchmarks/peers.json"
PAGES = {"README.md": ("figures",), "docs/benchmarks.md": ("conditions", "start", "cold", "ending", "output", "stdin")}
PART = re.compile(r"(<!-- begin (\w+): perf/peers --render writes this -->\n).*?(<!-- end \2 -->\n)", re.DOTALL)
DEFAULT_MAX_LOAD = 0.5  # for each processor


class PageError(Exception):
    pass


def paragraph(text):
    return textwrap.fill(text, tables.WIDTH, break_long_words=False, break_on_hyphens=False)


def conditions(data):
    machine, versions, load = data["machine"], data["versions"], data["load"]
    peers = ", ".join(f"{name} {versions[name]}" for name in (OPENMPI, MPICH, PDSH, CLUSH))
    text = (f"`perf/peers --{data['mode']}`, {data['date']}: drun {versions['drun']} at {versions['commit']}, on {machine['processors']} "
            f"processors ({machine['processor']}), {machine['memory_gib']} GiB, {machine['system']}, Linux {machine['kernel']}, with "
            f"OpenSSH {versions[SSH]}. Peers are those of the distribution: {peers}. In each of {data['rounds']} rounds "
            f"({data['benchmarks']['output']['rounds']} of output and standard input), after one that warms up, all take "
            "turns. Figures are medians, with the range in brackets. The load average was "
            f"{load['before']} before and {load['after']} after.")
    paragraphs = [paragraph(text)]
    if load["limit"] > DEFAULT_MAX_LOAD * machine["processors"]:
        paragraphs.append(paragraph(f"**Other programs may have run at the same time:** the limit of the load average was raised to "
                                    f"{load['limit']:g} by `--max-load`."))
    return "\n\n".join(paragraphs)


def figures(data):
    """The small table of README.md: medians at 64 hosts, or at the largest number that was measured."""
    measured = data["benchmarks"]
    n_hosts = 64 if 64 in measured["start"]["hosts"] else max(measured["start"]["hosts"])
    columns = {"drun": (DRUN,), f"ssh {data['versions'][SSH]}": (SCRIPT, SSH)}
    columns |= {f"{name} {data['versions'][name]}": (name,) for name in (OPENMPI, MPICH, PDSH, CLUSH)}
    lines = [(f"seconds to run `hostname` on {n_hosts} hosts", "start", n_hosts, 1, 2),
             ("the same, on hosts that have no agent", "cold", n_hosts, 1, 2),
             (f"seconds from a failure on {measured['ending']['hosts']} hosts to the prompt", "ending", measured["ending"]["hosts"], 1, 2),
             (f"output of {measured['output']['hosts']} hosts, million lines/s", "output", measured["output"]["hosts"], 1e6, 2),
             ("input of a worker, MB/s", "stdin", measured["stdin"]["hosts"], 1, 0)]
    rows = []
    for title, name, hosts, scale, digits in lines:
        medians = tables.medians(name, measured[name])
        short = {row["what"] for row in measured[name]["rows"] if "failed" in row and row.get("hosts", hosts) == hosts}
        cells = []
        for names in columns.values():
            found = [f"{medians[hosts, one] / scale:.{digits}f}" for one in names if (hosts, one) in medians]
            cells.append(found[0] if found else "fails" if short & set(names) else "")
        rows.append([title, *cells])
    return tables.table(["", *columns], rows)


def parts(data):
    """Maps names of parts to their text."""
    found = {"conditions": conditions(data), "figures": figures(data)}
    for name, benchmark in data["benchmarks"].items():
        found[name] = "\n\n".join(tables.TABLES[name](benchmark))
    return found


def rendered(text, wanted, data):
    """`text` with its parts written anew. Raises PageError if it does not have exactly the `wanted` ones."""
    new, there = parts(data), [match[2] for match in PART.finditer(text)]
    if sorted(there) != sorted(wanted):
        raise PageError(f"the page has the parts {', '.join(there) or 'none'}, not {', '.join(wanted)}")
    return PART.sub(lambda match: f"{match[1]}\n{new[match[2]]}\n\n{match[3]}", text)


def differing(data, folder=ROOT):
    """The pages that differ from what `data` renders to."""
    return [page for page, text, new in _pages(data, folder) if text != new]


def write(data, folder=ROOT):
    for page, text, new in _pages(data, folder):
        if text != new:
            with open(os.path.join(folder, page), "w", encoding="utf-8") as file:
                file.write(new)


def _pages(data, folder):
    for page, wanted in PAGES.items():
        with open(os.path.join(folder, page), encoding="utf-8") as file:
            text = file.read()
        yield page, text, rendered(text, wanted, data)


def load(path=os.path.join(ROOT, DATA)):
    with open(path, encoding="utf-8") as file:
        return json.load(file)
