"""Tables of docs/sizes.md: measured costs, what larger collections need, and the tail of their latencies."""

from dataclasses import asdict

import numpy as np

from benchmarks.fan_out import Stalling, fan_out
from benchmarks.sizes import GB, SETUPS, Plan, lens_costs, setup_cost, shard_latency
from benchmarks.sizes import needs as needs_of
from benchmarks.tables.markdown import markdown

PASSAGES = (10_000_000, 100_000_000, 1_000_000_000)
SIMULATED = 5000
SEED = 1
HEDGED = 0.99  # quantile of a shard's latency after which another replica is asked
DEFAULT = Plan()


def costs() -> str:
    """Measured costs of each lens."""
    header = ["lens, one thread", "passages", "bytes per passage", "index, ms per passage", "ms per query", "p95"]
    header += ["peak MB, build", "peak MB, search", "latency grows with passages to the power of"]
    lines = []
    for lens, cost in lens_costs().items():
        source = f"fitted to {cost.sizes} sizes" if cost.sizes > 1 else "taken as proportional"
        numbers = [f"{cost.passages:,}", f"{cost.bytes_per_passage:,.0f}", f"{cost.index_ms_per_passage:.3f}"]
        numbers += [f"{cost.median_ms:.3f}", "" if cost.p95_ms is None else f"{cost.p95_ms:.3f}"]
        numbers += ["" if peak is None else f"{peak:,.0f}" for peak in (cost.build_peak_mb, cost.search_peak_mb)]
        lines.append([lens, *numbers, f"{cost.growth:.2f}, {source}"])
    return markdown(header, lines)


def setups() -> str:
    """Measured costs of whole collections."""
    header = ["collection, with texts and encoding", "bytes per passage", "build, core-ms per passage", "core-ms per query"]
    lines = []
    for lenses in SETUPS:
        cost = setup_cost(lenses)
        times = [f"{1000 * cost.core_seconds_per_passage:.1f}", f"{1000 * cost.core_seconds_per_query:.1f}"]
        lines.append([" + ".join(lenses), f"{cost.bytes_per_passage:,.0f}", *times])
    return markdown(header, lines)


def plan(assumed: Plan = DEFAULT) -> str:
    """The assumptions."""
    lines = [[f"`--{name.replace('_', '-')}`", f"{value:,}"] for name, value in asdict(assumed).items()]
    return markdown(["assumption", "value"], lines)


def needs(assumed: Plan = DEFAULT) -> str:
    """What larger collections need."""
    header = ["passages", "shards", "disk, GB", "memory, GB", "build, core-hours", "core-seconds per query"]
    header += ["nodes for memory", "for queries", "nodes", "price, build", "price, month"]
    measured, lines = lens_costs(), []
    for lenses in SETUPS:
        for passages in PASSAGES:
            found = needs_of(passages, lenses, measured, setup_cost(lenses), assumed)
            amounts = [found.disk_bytes / GB, found.memory_bytes / GB, found.build_core_hours]
            numbers = [f"{found.shards:,}", *(f"{amount:,.0f}" for amount in amounts), f"{found.core_seconds_per_query:,.2f}"]
            numbers += [f"{found.nodes_for_memory:,}", f"{found.nodes_for_queries:,}", f"{found.nodes:,}"]
            prices = [f"{found.build_price:,.0f}", f"{found.month_price:,.0f}"]
            lines.append([f"{passages:,}: {' + '.join(lenses)}", *numbers, *prices])
    return markdown(header, lines)


def tails(assumed: Plan = DEFAULT) -> str:
    """Simulated latencies of queries over all shards, in milliseconds."""
    header = [
        "slowest of all shards, ms",
        "shards",
        "p50",
        "p95",
        "p99",
        "with stalls, p50",
        "p95",
        "p99",
        "hedged, p50",
        "p95",
        "p99",
    ]
    measured, lines = lens_costs(), []
    for lenses in SETUPS:
        for passages in (assumed.shard_passages, *PASSAGES):
            shards = -(-passages // assumed.shard_passages)
            usual = shard_latency(lenses, measured, min(passages, assumed.shard_passages))
            stalling = Stalling(usual, assumed.stall_share, assumed.stall_times)
            numbers = [f"{shards:,}"]
            for draw, hedge_ms in ((usual.draw, None), (stalling.draw, None), (stalling.draw, usual.quantile(HEDGED))):
                simulated = fan_out(draw, shards, SIMULATED, SEED, hedge_ms)
                numbers += [f"{value:,.0f}" for value in np.quantile(simulated, [0.5, 0.95, 0.99])]
            lines.append([f"{passages:,}: {' + '.join(lenses)}", *numbers])
    return markdown(header, lines)
