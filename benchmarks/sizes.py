"""What collections of other sizes need: measured costs per passage and query, multiplied; see docs/sizes.md.

python -m benchmarks.sizes --shard-passages 2000000 --core-hour 0.05
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import ceil
from typing import Any

import numpy as np

from benchmarks.fan_out import Lognormal
from benchmarks.record import rows
from trilens.lenses.dense import DEFAULT as DENSE_DEFAULT

CHAPTERS = ("bm25", "dense", "sparse", "multi", "endtoend")  # whose rows are read
SETUPS = (("bm25", "dense"), ("bm25", "dense", "multi"))
HOURS_A_MONTH = 730
GB = 1e9


@dataclass(frozen=True, slots=True)
class Plan:
    """Assumptions about machines, load and prices; nothing of this is measured."""

    shard_passages: int = 1_000_000
    queries_per_second: float = 10.0
    utilisation: float = 0.5
    replicas: int = 2
    node_cores: int = 32
    node_memory_gb: int = 128
    core_hour: float = 0.03
    memory_gb_hour: float = 0.004
    disk_gb_month: float = 0.1
    stall_share: float = 0.001
    stall_times: float = 20.0


@dataclass(frozen=True, slots=True)
class LensCost:
    """Measured costs of one lens, with one thread, over `passages`. What is None was not recorded.

    `growth` is the exponent of the latency in the number of passages, fitted if there are several `sizes`, otherwise 1.
    """

    passages: int
    bytes_per_passage: float
    index_ms_per_passage: float
    median_ms: float
    p95_ms: float | None
    build_peak_mb: float | None
    search_peak_mb: float | None
    growth: float
    sizes: int

    def at(self, passages: int) -> float:
        """The median latency over another number of passages."""
        return float(self.median_ms * (passages / self.passages) ** self.growth)


@dataclass(frozen=True, slots=True)
class SetupCost:
    """Measured costs of a whole collection, with texts and encoding, in seconds of one core."""

    bytes_per_passage: float
    core_seconds_per_passage: float
    core_seconds_per_query: float


@dataclass(frozen=True, slots=True)
class Needs:
    """What a collection needs. Bytes are those of all replicas, which are on different nodes."""

    shards: int
    disk_bytes: float
    memory_bytes: float
    build_core_hours: float
    core_seconds_per_query: float
    nodes_for_memory: int
    nodes_for_queries: int
    nodes: int
    build_price: float
    month_price: float


def lens_costs() -> dict[str, LensCost]:
    """The last rows of each lens at its default parameters; the largest collection where several were measured."""
    bm25 = {row["documents"]: row for row in _ours("bm25") if row["corpus"].startswith("grown")}
    most = bm25[max(bm25)]
    dense = [row for row in _ours("dense") if row["parameters"] == {"probes": DENSE_DEFAULT.probed_share}]
    sparse = [row for row in _ours("sparse") if row["shape"] == "vdr" and row["parameters"] == {}]
    multi = {row["documents"]: row for row in _ours("multi") if row["grid"] == "default" and row["threads"] == 1}
    largest = multi[max(multi)]
    return {
        "bm25": _lens_cost(most, "ms_per_query_median", "index_seconds", most["index_bytes"], bm25),
        "dense": _lens_cost(dense[-1], "ms_median", "build_seconds", dense[-1]["index_bytes"]),
        "sparse": _lens_cost(sparse[-1], "ms_median", "build_seconds", sparse[-1]["index_bytes"]),
        "multi": _lens_cost(largest, "ms_median", "build_seconds", largest["bytes_per_token"] * largest["tokens"], multi),
    }


def setup_cost(lenses: Sequence[str]) -> SetupCost:
    """The costs of a collection with these lenses."""
    row = [row for row in rows("endtoend") if row["system"] == f"trilens, {' + '.join(lenses)}"][-1]
    return SetupCost(
        row["bytes_per_document"],
        row["threads"] / row["documents_per_second"],
        row["threads"] / row["queries_per_second_median"],
    )


def needs(passages: int, lenses: Sequence[str], costs: Mapping[str, LensCost], whole: SetupCost, plan: Plan) -> Needs:
    """What a collection of this size needs. The searches of all shards are added to the cost of a query in a small one."""
    shards = ceil(passages / plan.shard_passages)
    shard_passages = min(passages, plan.shard_passages)
    search = shards * sum(costs[lens].at(shard_passages) for lens in lenses) / 1000
    core_seconds = whole.core_seconds_per_query + search
    memory = plan.replicas * passages * sum(costs[lens].bytes_per_passage for lens in lenses)
    disk = plan.replicas * passages * whole.bytes_per_passage
    nodes_for_memory = ceil(memory / (plan.node_memory_gb * GB))
    nodes_for_queries = ceil(plan.queries_per_second * core_seconds / plan.utilisation / plan.node_cores)
    build_core_hours = passages * whole.core_seconds_per_passage / 3600
    node_hour = plan.node_cores * plan.core_hour + plan.node_memory_gb * plan.memory_gb_hour
    nodes = max(nodes_for_memory, nodes_for_queries, plan.replicas)
    return Needs(
        shards,
        disk,
        memory,
        build_core_hours,
        core_seconds,
        nodes_for_memory,
        nodes_for_queries,
        nodes,
        build_core_hours * plan.core_hour,
        nodes * node_hour * HOURS_A_MONTH + disk / GB * plan.disk_gb_month,
    )


def shard_latency(lenses: Sequence[str], costs: Mapping[str, LensCost], passages: int) -> Lognormal:
    """The latency of one shard, whose lenses are searched one after the other.

    The spread is that of the measured rows, where a 95th percentile was recorded; the other lenses are taken as constant.
    """
    medians = {lens: costs[lens].at(passages) for lens in lenses}
    slow = [median * (costs[lens].p95_ms or costs[lens].median_ms) / costs[lens].median_ms for lens, median in medians.items()]
    return Lognormal(sum(medians.values()), sum(slow))


def growth_exponent(latencies: Mapping[int, float]) -> float:
    """The exponent e of the least-squares fit of latency = c · passages^e; 1 for a single measurement."""
    if len(latencies) < 2:
        return 1.0
    passages, ms = (np.log(np.array(values, float)) for values in (list(latencies), list(latencies.values())))
    return float(np.polyfit(passages, ms, 1)[0])


def _ours(chapter: str) -> Iterator[dict[str, Any]]:
    return (row for row in rows(chapter) if row["system"] == "trilens")


def _lens_cost(
    row: Mapping[str, Any], ms: str, seconds: str, size: float, by_size: Mapping[int, Mapping[str, Any]] | None = None
) -> LensCost:
    documents = row["documents"]
    latencies = {count: float(one[ms]) for count, one in (by_size or {documents: row}).items()}
    return LensCost(
        documents,
        size / documents,
        1000 * row[seconds] / documents,
        row[ms],
        row.get("ms_p95"),
        row.get("build_peak_mb"),
        row.get("peak_mb"),
        growth_exponent(latencies),
        len(latencies),
    )


def main() -> None:
    """Print the tables for other assumptions."""
    from benchmarks.tables import sizes

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for field in fields(Plan):
        default = getattr(Plan(), field.name)
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(default), default=default, help=f"[{default}]")
    plan = Plan(**vars(parser.parse_args()))
    print("\n\n".join([sizes.costs(), sizes.setups(), sizes.plan(plan), sizes.needs(plan), sizes.tails(plan)]))


if __name__ == "__main__":
    main()
