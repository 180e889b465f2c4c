"""Compares two runs by their ratios, which depend less on the machine than the times do."""
from . import tables

TOLERATED = 0.2


def compared(old, new):
    """Rows of (benchmark, hosts, contender, ratio in old, ratio in new, their quotient). None where a run has no figure, and
    only for contenders that are not the ones to which others are compared."""
    rows = []
    for name in tables.FIGURES:
        before, after = (tables.ratios(name, data["benchmarks"][name]) for data in (old, new))
        for key in [*before, *(key for key in after if key not in before)]:
            if key[1] != tables.FIGURES[name][1]:
                one, two = before.get(key), after.get(key)
                rows.append((name, *key, one, two, two / one if one and two else None))
    return rows


def differs(quotient):
    """By more than a fifth, in either direction. A figure that only one run has differs, too."""
    return quotient is None or not 1 / (1 + TOLERATED) <= quotient <= 1 + TOLERATED


def report(old, new):
    """(text, number of rows that differ)"""
    def number(value):
        return "-" if value is None else f"{value:.2f}"

    rows = compared(old, new)
    cells = [[name, str(hosts), what, number(one), number(two), number(quotient), "differs" if differs(quotient) else ""]
             for name, hosts, what, one, two, quotient in rows]
    n_different = sum(differs(row[-1]) for row in rows)
    text = tables.table(["benchmark", "hosts", "launcher", "ratio A", "ratio B", "B / A", ""], cells)
    return f"{text}\n\n{n_different} of {len(rows)} ratios differ by more than {TOLERATED:.0%}", n_different
