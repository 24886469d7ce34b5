"""The arithmetic of sizes, by hand; the numbers come from the recorded rows."""

import subprocess
import sys

import pytest

from benchmarks.record import ROOT
from benchmarks.sizes import SETUPS, LensCost, Plan, SetupCost, growth_exponent, lens_costs, needs, setup_cost, shard_latency
from benchmarks.tables.__main__ import SIZES

COSTS = {
    "bm25": LensCost(1000, 100.0, 0.5, 1.0, None, None, None, 0.5, 3),
    "dense": LensCost(500, 900.0, 0.5, 2.0, 3.0, None, None, 1.0, 1),
}
WHOLE = SetupCost(3000.0, 0.036, 0.010)
PLAN = Plan(
    shard_passages=4000,
    queries_per_second=20,
    utilisation=0.5,
    replicas=2,
    node_cores=4,
    node_memory_gb=1,
    core_hour=0.5,
    memory_gb_hour=0.25,
    disk_gb_month=10.0,
)


def test_growth() -> None:
    assert growth_exponent({100: 5.0}) == 1.0
    assert growth_exponent({100: 1.0, 400: 2.0, 1600: 4.0}) == pytest.approx(0.5)
    assert COSTS["bm25"].at(4000) == pytest.approx(2.0)
    assert COSTS["dense"].at(4000) == pytest.approx(16.0)


def test_needs_by_hand() -> None:
    """A million passages in 250 shards, each 2 + 16 ms of search."""
    found = needs(1_000_000, ("bm25", "dense"), COSTS, WHOLE, PLAN)
    assert found.shards == 250
    assert (found.disk_bytes, found.memory_bytes) == (2 * 3e9, 2 * 1e9)
    assert found.build_core_hours == pytest.approx(10.0)
    assert found.core_seconds_per_query == pytest.approx(0.010 + 250 * 0.018)
    assert (found.nodes_for_memory, found.nodes_for_queries) == (2, 46)  # 20 · 4.51 / 0.5 = 180.4 cores of 4 a node
    assert found.nodes == 46
    assert found.build_price == pytest.approx(5.0)
    assert found.month_price == pytest.approx(46 * (4 * 0.5 + 1 * 0.25) * 730 + 6 * 10)


def test_a_collection_smaller_than_a_shard() -> None:
    found = needs(1000, ("bm25",), COSTS, WHOLE, PLAN)
    assert (found.shards, found.nodes_for_memory, found.nodes_for_queries, found.nodes) == (1, 1, 1, 2)  # replicas apart
    assert found.core_seconds_per_query == pytest.approx(0.010 + 0.001)


def test_the_latency_of_a_shard() -> None:
    """2 ms of bm25, taken as constant, and 16 ms of dense with its spread."""
    shard = shard_latency(("bm25", "dense"), COSTS, 4000)
    assert (shard.median_ms, shard.p95_ms) == pytest.approx((18.0, 2.0 + 24.0))


def test_recorded_rows_have_the_costs() -> None:
    costs = lens_costs()
    assert list(costs) == ["bm25", "dense", "sparse", "multi"]
    assert all(cost.median_ms > 0 and cost.bytes_per_passage > 0 and 0 < cost.growth <= 1 for cost in costs.values())
    assert all(setup_cost(lenses).bytes_per_passage > costs["dense"].bytes_per_passage for lenses in SETUPS)


def test_the_page_has_every_table_and_other_assumptions_can_be_given() -> None:
    page = (ROOT / "docs" / "sizes.md").read_text(encoding="utf-8")
    assert [name for name in SIZES if f"<!-- table: {name} -->" not in page] == []
    command = [sys.executable, "-m", "benchmarks.sizes", "--shard-passages", "10000000"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "| `--shard-passages` | 10,000,000 |" in printed
    assert "| 1,000,000,000: bm25 + dense | 100 |" in printed
