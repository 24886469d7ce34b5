"""The HTTP service under load: concurrent clients while another process commits, compared with a single-threaded handler.

    ./scripts/bench serve --corpus debian-en.jsonl.xz --seconds 300

Both serve the same collection with the same model. Queries are distinct titles of the corpus. A request fails if its response
is not 200 with hits.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from time import monotonic, perf_counter

import numpy as np

from benchmarks.record import add_data, file_hash, record
from trilens import Collection, Document
from trilens.read.readers import read

PATH = "/api/v1/collections/served/search"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
SERVICE = "from trilens.cli.main import main; main()"
# A minimal handler: one request, one search, one response. It refreshes after commits like the service.
PLAIN = """
import json, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
from trilens import Collection
from trilens.search.hits import HITS
from trilens.store.catalog import has_moved_on

collection, checked = Collection.open(sys.argv[1]), 0.0
collection.search(["warm up"], 1)

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *arguments): pass
    def do_POST(self):
        global checked
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if time.monotonic() - checked > 0.25:
            checked = time.monotonic()
            if has_moved_on(collection.path, collection.snapshot.commit):
                collection.refresh()
        rankings = collection.search(request["queries"], request["k"])
        answers = [{"query": q, "hits": HITS.dump_python(hits, mode="json")} for q, hits in zip(request["queries"], rankings)]
        body = json.dumps({"answers": answers}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")  # a persistent connection would block the other clients
        self.end_headers()
        self.wfile.write(body)

class Server(HTTPServer):
    request_queue_size = 512

server = Server(("127.0.0.1", 0), Handler)
print(f"serving at http://127.0.0.1:{server.server_address[1]}/", flush=True)
server.serve_forever()
"""
COMMITS = """
import sys, time
from trilens import Collection, Document

texts = sys.stdin.read().split("\\x00")
collection, number, deadline = Collection.open(sys.argv[1], threads=1), 0, time.monotonic() + float(sys.argv[2])
while time.monotonic() < deadline:
    numbers = range(number, number + 10)
    collection.upsert(Document(f"added {n % 500}", f"{n} {texts[n % len(texts)]}") for n in numbers)
    collection.commit()
    number += 10
    time.sleep(1)
print(number)
"""


def main() -> None:
    """Load both servers, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "--corpus", "debian-en.jsonl.xz", "JSON lines with title and text")
    parser.add_argument("--documents", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--clients", type=int, default=32)
    options = parser.parse_args()
    documents = list(islice(read([options.corpus], on_skip=lambda error: None), options.documents + 1000))
    indexed, others = documents[: options.documents], documents[options.documents :]
    queries = [document.title or document.text[:80] for document in documents if (document.title or document.text).strip()]
    for name, command in (("trilens serve", [SERVICE, "serve", "--port", "0", "PATH"]), ("one at a time", [PLAIN, "PATH"])):
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "served.trilens"
            with Collection.create(path) as collection:
                collection.add(indexed)
            arguments = [str(path) if argument == "PATH" else argument for argument in command]
            with _served(arguments) as address, _committed(path, options.seconds, others) as commits:
                times, failures = _load(address, queries, options.clients, options.seconds)
        record(
            "serve",
            engine=name,
            documents=len(indexed),
            data=file_hash(options.corpus),
            threads=len(os.sched_getaffinity(0)),
            seed=None,
            repeats=len(times),
            lenses=["bm25", "dense"],
            clients=options.clients,
            seconds=options.seconds,
            committed_meanwhile=commits[0],
            requests=len(times),
            failed=failures,
            per_second=round(len(times) / options.seconds, 1),
            ms_p50=round(1000 * float(np.percentile(times, 50)), 1),
            ms_p95=round(1000 * float(np.percentile(times, 95)), 1),
        )


@contextmanager
def _served(arguments: list[str]) -> Iterator[tuple[str, int]]:
    with subprocess.Popen([sys.executable, "-c", *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        host, _, port = process.stdout.readline().split()[2].removeprefix("http://").rstrip("/").partition(":")
        try:
            yield host, int(port)
        finally:
            process.terminate()


@contextmanager
def _committed(path: Path, seconds: float, documents: list[Document]) -> Iterator[list[int]]:
    """Run a process that upserts documents continuously; after its end the list holds their number."""
    committed: list[int] = []
    command = [sys.executable, "-c", COMMITS, str(path), str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("\0".join(document.text[:2000] for document in documents))
        process.stdin.close()
        yield committed
        committed.append(int(process.stdout.read()))


def _load(address: tuple[str, int], queries: list[str], clients: int, seconds: float) -> tuple[list[float], int]:
    """Latencies of all requests, and the number of failures.

    Clients share the cores with the server, so they do little work: a single thread that does not parse responses.
    """
    times: list[float] = []
    failures: list[str] = []
    deadline = monotonic() + seconds

    async def ask(client: int) -> None:
        streams: Streams | None = None
        for query in islice(cycle(queries), client, None, clients):
            if monotonic() >= deadline:
                break
            started = perf_counter()
            try:
                streams = streams or await asyncio.open_connection(*address)
                answer, kept_open = await asyncio.wait_for(_answered(streams, query), timeout=120)
                if not answer.startswith(b"HTTP/1.1 200") or b'"doc_id"' not in answer:
                    failures.append(answer.decode()[:200])
            except (OSError, EOFError, TimeoutError) as error:
                failures.append(repr(error))
                kept_open = False
            times.append(perf_counter() - started)
            if streams and not kept_open:
                streams[1].close()
                streams = None
        if streams:
            streams[1].close()

    async def ask_all() -> None:
        await asyncio.gather(*(ask(client) for client in range(clients)))

    asyncio.run(ask_all())
    for failure in failures[:5]:
        print(failure, file=sys.stderr)
    return times, len(failures)


async def _answered(streams: Streams, query: str) -> tuple[bytes, bool]:
    """Send a search; return the full response and whether the connection stays open."""
    reader, writer = streams
    body = json.dumps({"queries": [query], "k": 10}).encode()
    head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    started = await reader.readuntil(b"\r\n\r\n")
    fields = started.lower()
    length = int(fields.partition(b"content-length:")[2].partition(b"\r\n")[0])
    return started + await reader.readexactly(length), b"connection: close" not in fields


if __name__ == "__main__":
    main()
