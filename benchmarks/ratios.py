"""Figures of one run over figures of the same run: the only ones that a gate may stand on.

python -m benchmarks.ratios benchmarks/out/stdio.json
python -m benchmarks.ratios benchmarks/out/http.json benchmarks/out/http1c.json
"""

import json
import sys
from pathlib import Path

from benchmarks.report import NOT_MEASURED, Results, figure, number, ratio, table

Column = tuple[str, Results, str, str, str]
"""Heading, results, cell, figure, and the peer to divide by."""


def added(results: Results, peer: str, cell: str, name: str) -> float | None:
    """Subtract the direct figure from a peer's."""
    own, direct = figure(results, peer, cell, name), figure(results, "direct", cell, name)
    return None if own is None or direct is None else own - direct


def ratio_cells(peer: str, columns: list[Column]) -> list[str]:
    """Return one peer's ratios."""
    return [
        ratio(figure(results, peer, cell, name), figure(results, base, cell, name)) for _, results, cell, name, base in columns
    ]


def stdio(results: Results) -> str:
    """Ratios to the tee wrapper, the practical limit on stdio."""
    columns: list[Column] = [
        ("1-core p99 ÷ tee's", results, "lat1c", "p99_us", "tee"),
        ("lat p50 ÷ direct (all cores)", results, "lat", "p50_us", "direct"),
        ("200B msg/s ÷ direct", results, "p200", "msgs_s", "direct"),
        ("÷ tee", results, "p200", "msgs_s", "tee"),
        ("4K ÷ tee", results, "p4k", "msgs_s", "tee"),
        ("16M↓ ÷ tee", results, "b16", "MB_s", "tee"),
        ("16M↑ ÷ tee", results, "b16up", "MB_s", "tee"),
        ("64M↓ ÷ tee", results, "b64", "MB_s", "tee"),
        ("CPU/msg ÷ tee", results, "p200", "cpu_us_msg", "tee"),
    ]
    tee_adds = added(results, "tee", "lat1c", "p50_us")
    rows = []
    for peer in results:
        adds = added(results, peer, "lat1c", "p50_us")
        idle = figure(results, peer, "idle", "rss")
        peaks = [figure(results, peer, cell, "hwm") for cell in ("b16", "b64")]
        memory = [number(None if idle is None or peak is None else peak - idle) for peak in peaks]
        rows.append([peer, number(adds), ratio(adds, tee_adds), *ratio_cells(peer, columns), *memory])
    head = ["peer", "added µs/round trip (1 core)", "added ÷ tee's added", *(column[0] for column in columns)]
    return table([*head, "peak@16M − idle MiB", "peak@64M − idle MiB"], rows)


def http(results: Results, one_core: Results) -> str:
    """Ratios to nginx, and to the direct way; latencies from the run on one core."""
    columns: list[Column] = [
        ("POST p50 ÷ direct", results, "lat", "p50_us", "direct"),
        ("÷ nginx", results, "lat", "p50_us", "nginx(C)"),
        ("c=16 req/s ÷ direct", results, "t16", "req_s", "direct"),
        ("÷ nginx", results, "t16", "req_s", "nginx(C)"),
        ("c=64 ÷ nginx", results, "t64", "req_s", "nginx(C)"),
        ("SSE p50 ÷ direct (1 core)", one_core, "sselat", "p50_us", "direct"),
        ("SSE p99 ÷ nginx (1 core)", one_core, "sselat", "p99_us", "nginx(C)"),
        ("SSE ev/s ÷ nginx (1 core)", one_core, "ssetput", "ev_s", "nginx(C)"),
        ("16M↓ ÷ nginx", results, "big", "MB_s", "nginx(C)"),
    ]
    rows = []
    for peer in results:
        adds = added(one_core, peer, "lat", "p50_us")
        rows.append([peer, NOT_MEASURED if adds is None else f"{adds:+.0f}", *ratio_cells(peer, columns)])
    return table(["peer", "added µs/POST (1 core)", *(column[0] for column in columns)], rows)


def main(paths: list[str]) -> int:
    """Print the table that belongs to the files: one of bench_stdio, or two of bench_http."""
    results = [json.loads(Path(path).read_text()) for path in paths]
    if len(results) not in {1, 2}:
        print("usage: python -m benchmarks.ratios STDIO.json | HTTP.json HTTP-ON-ONE-CORE.json", file=sys.stderr)
        return 2
    print(stdio(results[0]) if len(results) == 1 else http(results[0], results[1]), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
