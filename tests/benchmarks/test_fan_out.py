"""The simulator against closed forms."""

import numpy as np
import pytest

from benchmarks.fan_out import Latencies, Lognormal, Stalling, fan_out

QUERIES = 40_000


def exponential(random: np.random.Generator, shape: tuple[int, int]) -> Latencies:
    return random.exponential(1.0, shape)


def constant(random: np.random.Generator, shape: tuple[int, int]) -> Latencies:
    return np.full(shape, 3.0)


@pytest.mark.parametrize("shards", [1, 4, 64])
def test_the_slowest_of_exponential_latencies(shards: int) -> None:
    """Its mean is the harmonic number H_n, its median -ln(1 - 2^(-1/n))."""
    slowest = fan_out(exponential, shards, QUERIES, seed=1)
    assert slowest.mean() == pytest.approx(sum(1 / number for number in range(1, shards + 1)), rel=0.02)
    assert np.median(slowest) == pytest.approx(-np.log(1 - 0.5 ** (1 / shards)), rel=0.02)


@pytest.mark.parametrize("hedge_ms", [0.0, 0.5, 2.0])
def test_a_hedged_exponential_latency(hedge_ms: float) -> None:
    """The mean of min(X, d + Y) is the integral of its survival: 1 - e^-d until d, then e^-d / 2."""
    hedged = fan_out(exponential, 1, QUERIES, seed=2, hedge_ms=hedge_ms)
    assert hedged.mean() == pytest.approx(1 - np.exp(-hedge_ms) / 2, rel=0.02)


def test_quantiles_of_lognormal_latencies() -> None:
    """The q-quantile of the slowest of n is the q^(1/n)-quantile of one."""
    shard = Lognormal(10.0, 25.0)
    assert (shard.quantile(0.5), shard.quantile(0.95)) == pytest.approx((10.0, 25.0))
    for shards in (1, 10, 100):
        slowest = fan_out(shard.draw, shards, QUERIES, seed=3)
        for share in (0.5, 0.95, 0.99):
            assert np.quantile(slowest, share) == pytest.approx(shard.quantile(share ** (1 / shards)), rel=0.04)


def test_stalls() -> None:
    """A share p of requests stalls, so 1 - (1 - p)^n of the queries wait for one; a second request spares most of them."""
    steady = Lognormal(3.0, 3.0)
    stalling = Stalling(steady, 0.01, 20.0)
    waiting = fan_out(stalling.draw, 50, QUERIES, seed=4)
    assert set(np.unique(waiting.round(6))) == {3.0, 60.0}
    assert (waiting > 3).mean() == pytest.approx(1 - 0.99**50, abs=0.01)
    hedged = fan_out(stalling.draw, 50, QUERIES, seed=4, hedge_ms=5.0)
    assert set(np.unique(hedged.round(6))) == {3.0, 8.0, 60.0}
    assert (hedged > 8).mean() == pytest.approx(1 - (1 - 0.01**2) ** 50, abs=0.002)


def test_queries_do_not_depend_on_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fan_out(constant, 7, 10, seed=5).tolist() == [3.0] * 10
    assert fan_out(constant, 7, 10, seed=5, hedge_ms=1.0).tolist() == [3.0] * 10  # the second answer comes later
    once = fan_out(exponential, 4, 100, seed=6)
    assert once.tolist() == fan_out(exponential, 4, 100, seed=6).tolist()
    monkeypatch.setattr("benchmarks.fan_out.MOST_AT_ONCE", 40)
    assert once.tolist() == fan_out(exponential, 4, 100, seed=6).tolist()
