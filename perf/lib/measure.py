"""Rounds of a measurement: the contenders take turns, and one that comes up short is reported with the reason."""
import argparse
import datetime
import json
import os
import re
import sys

from . import tables
from .cluster import ROOT, Short


def stop(message):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {message}")


def rounds(names, n_rounds, once, required):
    """Rows of the table, in the order of `names`. `once(name)` gives a dictionary of figures, or raises Short. The first
    round warms up and is not counted, and tells who can't do it. A contender of `required` must not come up short."""
    figures, failed = {name: [] for name in names}, {}
    for turn in range(n_rounds + 1):
        for name in [name for name in names if name not in failed]:
            try:
                figure = once(name)
            except Short as short:
                if name in required:
                    stop(f"{name}: {short}")
                failed[name] = str(short)
                print(f"  {name}: {short}", file=sys.stderr, flush=True)
                _warm_up(required, once)
                continue
            if turn > 0:
                figures[name].append(figure)
        print(f"  {datetime.datetime.now():%H:%M:%S}: round {turn} of {n_rounds}", file=sys.stderr, flush=True)
    return [{"what": name, "failed": failed[name]} if name in failed else {"what": name, **_merged(figures[name])}
            for name in names]


def _warm_up(names, once):
    """Runs those that leave something on the hosts, such as drun's agent: the hosts may be new ones."""
    for name in names:
        try:
            once(name)
        except Short as short:
            stop(f"{name}: {short}")


def _merged(figures):
    """[{"seconds": 1}, {"seconds": 2}] as {"seconds": [1, 2]}"""
    return {key: [round(figure[key], 4) for figure in figures] for key in figures[0]}


def settled(size, next_size):
    """`next_size(size)` measures with `size`, and gives the size that would last as long as wanted. A small one says too
    little of a launcher that has to get up to speed, so one that is much larger is tried, too."""
    larger = next_size(size)
    while larger >= 1.5 * size:
        size, larger = larger, next_size(larger)
    return max(size, larger)


def arguments(description, n_rounds=5):
    """The parser of a script in perf/, with the options that all of them have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=n_rounds, help="without the one that warms up")
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--json", metavar="FILE", help="write the rows there")
    return parser


def write_json(path, data):
    """Writes a list of figures as one line."""
    text = re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", lambda match: f"[{' '.join(match[1].split())}]", json.dumps(data, indent=1))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")


def report(options, name, data):
    """Prints the tables, and writes `data` if that was asked for."""
    print("\n\n".join(tables.TABLES[name](data)))
    if options.json:
        write_json(options.json, data)
