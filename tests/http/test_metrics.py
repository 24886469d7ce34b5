import pytest

pytest.importorskip("fastapi")

from trilens.http.metrics import Metrics


def test_requests_batches_and_documents_in_the_text_format() -> None:
    metrics = Metrics()
    for _ in range(2):
        metrics.requests.labels("GET", "/a", "200").inc()
    for size in (1, 2, 3, 99):
        metrics.batches.labels("papers").observe(size)
    metrics.seconds.labels("GET", "/a").observe(0.02)
    lines = metrics.text([("papers", 7)]).splitlines()
    assert 'trilens_requests_total{method="GET",route="/a",status="200"} 2.0' in lines
    assert "# TYPE trilens_requests_total counter" in lines
    assert 'trilens_batch_queries_bucket{collection="papers",le="2.0"} 2.0' in lines
    assert 'trilens_batch_queries_bucket{collection="papers",le="4.0"} 3.0' in lines
    assert 'trilens_batch_queries_bucket{collection="papers",le="+Inf"} 4.0' in lines
    assert 'trilens_batch_queries_sum{collection="papers"} 105.0' in lines
    assert 'trilens_request_seconds_bucket{le="0.025",method="GET",route="/a"} 1.0' in lines
    assert 'trilens_documents{collection="papers"} 7.0' in lines


def test_services_of_one_process_count_apart() -> None:
    first, second = Metrics(), Metrics()
    first.requests.labels("GET", "/a", "200").inc()
    assert "/a" not in second.text([])


def test_labels_are_escaped() -> None:
    metrics = Metrics()
    metrics.requests.labels('a"b\\c\nd', "", "").inc()
    assert 'method="a\\"b\\\\c\\nd"' in metrics.text([])
