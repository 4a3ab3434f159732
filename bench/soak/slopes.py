"""Rows of a soak and their slopes.

    slopes.py ROWS.tsv                              slope per hour of each figure, with an interval of 95 % at least
    slopes.py --add PIECE SERVER LINES ROWS.tsv     adds the seconds of `export --ndjson LINES` as rows of ten seconds
    slopes.py --check                               how often intervals contain the slope, over planted series

A slope is that of a straight line with errors that resemble their neighbours: AR(1), fitted by Prais and Winsten (1954), with the
correlation corrected for its bias in short series with a trend (Kendall, 1954: about -(2 + 4 r) / n). Pieces of one server share a
slope and have a level each, since a piece begins with other clients; pieces of different servers are told apart. The first five
minutes of a piece are left out: tables and buffers grow to their size in them. Memory is read in pages and descriptors in
whole numbers, so that an interval is wider by one of these over the piece.
"""

import json
import math
import random
import sys

STEP_S = 10
FIGURES = ["server_rss_mb", "server_fds", "clients_rss_mb", "clients_fds", "p99_ms"]
# What one step of a reading is.
STEPS = {"server_rss_mb": 0.004096, "clients_rss_mb": 0.004096, "server_fds": 1, "clients_fds": 1, "p99_ms": 0}
WARM_UP_S = 300
COLUMNS = ["piece", "server", "at_s", *FIGURES, "deliveries"]


def rows_of(lines):
    """Rows of the hold of the rung, of ten seconds each: the last memory, the most descriptors (between two games a server
    has fewer, for a moment), and the mean of the p99s of the seconds."""
    hold, cells, books, is_rung = None, {}, 0, False
    for line in map(json.loads, lines):
        kind = line["type"]
        if kind == "trial_begin":
            # The generator is calibrated before and after the rung.
            is_rung = line["purpose"] == "rung"
        elif not is_rung:
            continue
        elif kind == "event" and line["kind"] in ("hold", "drain"):
            hold = (line["at_ns"], math.inf) if line["kind"] == "hold" else (hold[0], line["at_ns"])
        elif kind == "samples":
            values = line["values"]
            cell = cells.setdefault(int(line["at_ns"] / 1e9) // STEP_S, {})
            for who, name in (("subject", "server"), ("worker", "clients")):
                # A second may have one of them without the other.
                told = values.get(who, {})
                if "rss_bytes" in told:
                    cell[f"{name}_rss_mb"] = told["rss_bytes"] / 1e6
                if "fds" in told:
                    cell[f"{name}_fds"] = max(told["fds"], cell.get(f"{name}_fds", 0))
        elif kind == "interval":
            cell = cells.setdefault(line["second"] // STEP_S, {})
            for measure in ("delivery", "response"):
                p99 = line["durations_ns"].get(measure, {}).get("hold", {}).get("p99")
                if p99 is not None:
                    cell.setdefault("p99s", []).append(p99 / 1e6)
            cell["deliveries"] = cell.get("deliveries", 0) + line["counters"].get("delivered", 0)
        elif kind == "ticks" and (line.get("interval_ns") or {}).get("p99") is not None:
            second = int(line["from_ns"] / 1e9)
            cells.setdefault(second // STEP_S, {}).setdefault("p99s", []).append(line["interval_ns"]["p99"] / 1e6)
        elif kind == "books":
            books = line["judged"]["delivered"]
    if hold is None:
        sys.exit("slopes.py: no hold in these lines")
    if hold[1] == math.inf:
        sys.exit("slopes.py: the hold in these lines has no end; export the run again when it is over")
    inside = range(math.ceil(hold[0] / 1e9 / STEP_S), int(hold[1] / 1e9 // STEP_S))
    rows = []
    for at in inside:
        cell = cells.get(at, {})
        if p99s := cell.pop("p99s", None):
            cell["p99_ms"] = sum(p99s) / len(p99s)
        rows.append({"at_s": at * STEP_S, **cell})
    return rows, books


def least_squares(columns, values):
    """Coefficients, residuals and the inverse of the normal matrix, by Gauss and Jordan."""
    size = len(columns)
    normal = [[sum(a * b for a, b in zip(one, other)) for other in columns] for one in columns]
    inverse = [[float(row == column) for column in range(size)] for row in range(size)]
    for pivot in range(size):
        best = max(range(pivot, size), key=lambda row: abs(normal[row][pivot]))
        normal[pivot], normal[best] = normal[best], normal[pivot]
        inverse[pivot], inverse[best] = inverse[best], inverse[pivot]
        by = normal[pivot][pivot]
        if abs(by) < 1e-12:
            return None
        for matrix in (normal, inverse):
            matrix[pivot] = [value / by for value in matrix[pivot]]
        for row in range(size):
            if row != pivot:
                times = normal[row][pivot]
                for matrix in (normal, inverse):
                    matrix[row] = [value - times * other for value, other in zip(matrix[row], matrix[pivot])]
    right = [sum(a * b for a, b in zip(column, values)) for column in columns]
    fitted = [sum(a * b for a, b in zip(row, right)) for row in inverse]
    residuals = [
        value - sum(factor * column[at] for factor, column in zip(fitted, columns)) for at, value in enumerate(values)
    ]
    return fitted, residuals, inverse


def student(freedom):
    """97.5 % quantile of Student's t, by Cornish and Fisher's expansion; exact to 0.1 % from 8 degrees of freedom on."""
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def slope(pieces):
    """Slope per second over pieces of (s, value) and half of its interval of 95 %; None: too few values."""
    pieces = [piece for piece in pieces if len(piece) >= 12]
    count = sum(map(len, pieces))
    freedom = count - len(pieces) - 1
    if freedom < 10:
        return None
    if all(value == piece[0][1] for piece in pieces for _, value in piece):
        # Constant: what remains would be the rounding of the arithmetic.
        return 0.0, 0.0
    middle = sum(at for piece in pieces for at, _ in piece) / count

    def fit(correlation):
        times, values, levels = [], [], [[] for _ in pieces]
        for number, piece in enumerate(pieces):
            for place, (at, value) in enumerate(piece):
                before = piece[place - 1] if place else None
                weight = math.sqrt(1 - correlation**2) if before is None else 1.0

                def whiten(now, last):
                    return weight * now if before is None else now - correlation * last

                times.append(whiten(at - middle, before[0] - middle if before else 0.0) / 3600)
                values.append(whiten(value, before[1] if before else 0.0))
                for other, level in enumerate(levels):
                    level.append(whiten(1.0, 1.0) if other == number else 0.0)
        return least_squares([times, *levels], values)

    correlation = 0.0
    for _ in range(20):
        found = fit(correlation)
        if found is None:
            return None
        (rise, *heights), _, _ = found
        residuals = [
            [value - rise * (at - middle) / 3600 - height for at, value in piece] for piece, height in zip(pieces, heights)
        ]
        squares = sum(value * value for piece in residuals for value in piece)
        if squares < 1e-18:
            return rise / 3600, 0.0
        products = sum(a * b for piece in residuals for a, b in zip(piece, piece[1:]))
        length = count / len(pieces)
        corrected = min(max((products / squares + 2 / length) / (1 - 4 / length), -0.5), 0.97)
        if abs(corrected - correlation) < 1e-4:
            break
        correlation = corrected
    (rise, *_), errors, inverse = fit(correlation)
    variance = sum(error * error for error in errors) / freedom
    return rise / 3600, student(freedom) * math.sqrt(variance * inverse[0][0]) / 3600


def report(path):
    with open(path) as file:
        names = file.readline().rstrip("\n").split("\t")
        rows = [dict(zip(names, line.rstrip("\n").split("\t"))) for line in file]
    servers = list(dict.fromkeys(row["server"] for row in rows))
    for server in servers:
        own = [row for row in rows if row["server"] == server]
        pieces = list(dict.fromkeys(row["piece"] for row in own))
        hours = len(own) * STEP_S / 3600
        deliveries = sum(int(row["deliveries"] or 0) for row in own)
        print(f"server {server}: {len(pieces)} pieces, {hours:.2f} h" + (f", {deliveries:.3e} deliveries" if deliveries else ""))
        print(f"{'figure':16}{'from':>12}{'to':>12}{'slope per hour':>18}   95 % interval")
        for figure in FIGURES:
            series = [
                [
                    (float(row["at_s"]), float(row[figure]))
                    for row in own
                    if row["piece"] == piece and row[figure] and float(row["at_s"]) >= WARM_UP_S
                ]
                for piece in pieces
            ]
            values = [value for piece in series for _, value in piece]
            if not values:
                continue
            found = slope(series)
            span_s = max(piece[-1][0] - piece[0][0] for piece in series if piece)
            shown = f"{'too few values':>18}"
            if found:
                rise, half = (3600 * value for value in found)
                half += 3600 * STEPS[figure] / span_s
                holds = "contains 0" if abs(rise) <= half else "DOES NOT CONTAIN 0"
                shown = f"{rise:>18.4g}   {rise - half:.4g} to {rise + half:.4g}: {holds}"
            print(f"{figure:16}{min(values):>12.4g}{max(values):>12.4g}{shown}")


def add(piece, server, lines_path, path):
    with open(lines_path) as file:
        rows, books = rows_of(file)
    total = sum(row.get("deliveries", 0) for row in rows)
    try:
        has_head = open(path).readline() != ""
    except FileNotFoundError:
        has_head = False
    with open(path, "a") as file:
        if not has_head:
            file.write("\t".join(COLUMNS) + "\n")
        for row in rows:
            cells = [piece, server, *(row.get(name, "") for name in COLUMNS[2:])]
            file.write("\t".join(f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in cells) + "\n")
    print(f"{piece}: {len(rows)} rows of {STEP_S} s; the books have {books} deliveries, {total} of them in these rows")


def check():
    """Planted series: two pieces of 180 rows, and a slope that is 0 or not."""
    wrong = 0
    for correlation in (0.0, 0.3, 0.6, 0.8):
        for planted in (0.0, 2.0):
            random.seed(7)
            inside, count = 0, 1000
            for _ in range(count):
                pieces = []
                for _ in range(2):
                    last = random.gauss(0, 1)
                    piece = []
                    level = random.gauss(0, 10)
                    for at in range(180):
                        last = correlation * last + math.sqrt(1 - correlation**2) * random.gauss(0, 1)
                        piece.append((at * STEP_S, level + planted * at * STEP_S / 3600 + last))
                    pieces.append(piece)
                rise, half = slope(pieces)
                inside += abs(rise - planted / 3600) <= half
            share = inside / count
            is_ok = 0.93 <= share <= 0.97
            wrong += not is_ok
            print(f"correlation {correlation}, slope {planted} per hour: inside {share:.1%} {'' if is_ok else '(not 93 to 97 %)'}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--check"]:
            check()
        case ["--add", piece, server, lines, rows]:
            add(piece, server, lines, rows)
        case [rows] if not rows.startswith("-"):
            report(rows)
        case _:
            sys.exit(__doc__)
