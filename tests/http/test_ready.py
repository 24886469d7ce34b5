"""Readiness: from the start of a service to its end, and with a collection that cannot be searched."""

import shutil
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from trilens import Collection, Document
from trilens.encode.models import bundled_models
from trilens.http.app import make_app
from trilens.http.limits import Limits
from trilens.http.metrics import Metrics
from trilens.http.served import ServedCollection
from trilens.http.service import Service
from trilens.store.config import DEFAULT_MODEL

from .running import Running

READY = "/api/v1/ready"


def service_of(path: Path) -> Service:
    limits, metrics = Limits(), Metrics()
    return Service({"c": ServedCollection("c", Collection.open(path), limits, metrics, threads=1)}, limits, metrics=metrics)


def test_ready_between_warming_up_and_shutting_down(plain: Path) -> None:
    service = service_of(plain)
    with TestClient(make_app(service)) as client:
        first = client.get(READY)
        assert (first.status_code, first.json()) == (503, {"error": "the service is warming up"})
        assert client.get("/api/v1/health").status_code == 200
        service.warm_up()
        assert client.get(READY).json()["status"] == "ready"
        service.end()
        assert client.get(READY).json() == {"error": "the service is shutting down"}
        service.warm_up()
        assert client.get(READY).status_code == 503


def test_a_collection_that_cannot_be_searched_makes_it_unready_until_it_can(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = shutil.copytree(bundled_models()[DEFAULT_MODEL], tmp_path / "model")
    with Collection.create(tmp_path / "c.trilens", lenses=["dense"], model=str(model)) as collection:
        collection.add([Document("a", "a text")])
    model.rename(tmp_path / "away")
    service = service_of(tmp_path / "c.trilens")
    service.warm_up()
    assert "collection c cannot be searched: " in capsys.readouterr().err
    with TestClient(make_app(service)) as client:
        answer = client.get(READY)
        assert answer.status_code == 503
        assert answer.json()["error"] == "a collection cannot be searched; see the log of the service"
        assert "collection c cannot be searched: " in capsys.readouterr().err
        (tmp_path / "away").rename(model)
        assert client.get(READY).status_code == 200


def test_the_address_is_printed_when_the_service_is_ready(service: Running) -> None:
    assert service.call("GET", "/ready").json()["status"] == "ready"


def test_a_collection_that_is_gone_has_a_problem_and_its_last_figures(plain: Path, tmp_path: Path) -> None:
    path = shutil.copytree(plain, tmp_path / "c.trilens")
    service = service_of(path)
    with TestClient(make_app(service)) as client:
        (before,) = client.get("/api/v1/collections").json()["collections"]
        shutil.rmtree(path)
        (after,) = client.get("/api/v1/collections").json()["collections"]
        assert before["problem"] is None and str(path) in after["problem"]
        assert (after["documents"], after["committed"]) == (before["documents"], None)
        assert client.get("/api/v1/metrics").status_code == 200
