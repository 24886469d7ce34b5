"""Questions for the passages of a collection, from services that answer well, badly, slowly or not at all."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.language.servers import Answers, Reply, closes, nobody, says, sends, serving, stays_silent
from trilens import Collection, Document
from trilens.errors import BadInput, ServiceFailed
from trilens.language import model as asking
from trilens.language.model import LanguageModel
from trilens.train.data.sources import parse_source, read_examples
from trilens.train.synthesis.questions import prompt_for
from trilens.train.synthesis.synthesize import Estimate, Synthesis, SynthesisConfig, SynthesisReport, synthesize

DOCS = 30
WORDS = ["amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "inlet", "jetty"]


def name(number: int) -> str:
    """Two words that no other document has together."""
    return f"{WORDS[number // 10]} {WORDS[number % 10]}{number}"


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    with Collection.create(tmp_path / "c.trilens", lenses=["bm25"], threads=1) as made:
        made.add(Document(f"d{number}", f"The place {name(number)} lies in the north.") for number in range(DOCS + 1))
        made.commit()
        made.delete([f"d{DOCS}"])
        made.commit()
        yield made


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pauses between attempts."""
    monkeypatch.setattr(asking, "sleep", lambda seconds: None)


def question(prompt: str) -> str:
    """A question about the place of the text."""
    return f"Where is {prompt.split('The place ')[1].split(' lies')[0]}?"


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_every_passage_gets_its_question(collection: Collection, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    with serving(says(question)) as service:
        report = synthesize(collection, LanguageModel(url=service.url, model="tiny"), SynthesisConfig(), out)
    assert report == SynthesisReport(passages=DOCS, questions=DOCS, kept=DOCS, not_found=0, silent=0)
    found = {line["positive_ctxs"][0]["passage_id"]: line["question"] for line in lines(out)}
    assert found == {f"d{number}": f"Where is {name(number)}?" for number in range(DOCS)}
    assert {request["body"]["max_tokens"] for request in service.requests} == {64}
    examples = read_examples([parse_source({"format": "dpr", "path": str(out)})]).examples
    assert len(examples) == examples.passage_count == DOCS
    assert examples.passage(int(examples.positives(0)[0])) == f"The place {examples.query(0)[9:-1]} lies in the north."


def test_questions_that_do_not_find_their_passage_are_dropped(collection: Collection, tmp_path: Path) -> None:
    """The model asks about d7 whatever it is shown; only one of the first two results can be the passage."""

    def made(found_in: int) -> tuple[SynthesisReport, list[str]]:
        out = tmp_path / f"{found_in}.jsonl"
        with serving(says(f"Where is {name(7)}?")) as service:
            report = synthesize(collection, LanguageModel(url=service.url), SynthesisConfig(found_in=found_in), out)
        return report, [line["positive_ctxs"][0]["passage_id"] for line in lines(out)]

    report, kept = made(1)
    assert (report.kept, report.not_found, kept) == (1, DOCS - 1, ["d7"])
    assert len(made(0)[1]) == DOCS


def test_whole_documents_are_the_positives_of_questions_about_a_passage(tmp_path: Path) -> None:
    sentences = [f"The place {name(number)} lies in the north, where it is cold all year." for number in range(12)]
    with Collection.create(tmp_path / "long", lenses=["bm25"], passages={"words": 20, "overlap": 5}, threads=1) as collection:
        long = Document("long", " ".join(sentences), "A title")
        collection.add([long, Document("short", sentences[0])])
        collection.commit()
        prompts: list[str] = []

        def asked(prompt: str) -> str:
            prompts.append(prompt)
            return question(prompt)

        with serving(says(asked)) as service:
            model = LanguageModel(url=service.url)
            report = synthesize(collection, model, SynthesisConfig(of="documents"), tmp_path / "documents.jsonl")
            synthesize(collection, model, SynthesisConfig(questions=2), tmp_path / "passages.jsonl")
    assert (report.passages, report.kept) == (1, 1)
    [line] = lines(tmp_path / "documents.jsonl")
    assert line["positive_ctxs"] == [{"passage_id": "long", "title": "A title", "text": long.text}]
    assert len(prompts[0]) < len(prompt_for(long.text, 1))
    by_passage = lines(tmp_path / "passages.jsonl")
    assert len(by_passage) > 5
    for line in by_passage:
        [positive] = line["positive_ctxs"]
        doc_id, _, place = positive["passage_id"].partition(":")
        start, end = map(int, place.split("-")) if place else (0, None)
        assert positive["text"] == (long.text if doc_id == "long" else sentences[0])[start:end]
        assert line["question"][9:-1] in positive["text"]


def test_documents_that_are_not_long(collection: Collection, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no document has more than one passage"):
        Synthesis(collection, LanguageModel(url="http://localhost:1/v1"), SynthesisConfig(of="documents"))
    with Collection.create(tmp_path / "empty", lenses=["bm25"]) as empty, pytest.raises(BadInput, match="is empty"):
        Synthesis(empty, LanguageModel(url="http://localhost:1/v1"), SynthesisConfig())


def test_the_estimate_counts_prompts(collection: Collection) -> None:
    """Names are 10 to 12 characters long, so texts are 41 to 43; four characters are a token."""
    job = Synthesis(collection, LanguageModel(url="http://localhost:1/v1"), SynthesisConfig(limit=12, max_tokens=50))
    texts = [job._sample[number].text for number in range(12)]
    assert job.estimate() == Estimate(12, sum(len(prompt_for(text, 1)) for text in texts) // 4, 600)
    assert job.estimate(done=10).requests == 2
    shortened = Synthesis(collection, LanguageModel(url="http://localhost:1/v1"), SynthesisConfig(limit=12, max_characters=4))
    assert shortened.estimate().tokens_in == 12 * len(prompt_for("four", 1)) // 4


@pytest.mark.parametrize("parallel", [1, 4])
def test_a_service_that_fails_now_and_then(collection: Collection, tmp_path: Path, at_once: None, parallel: int) -> None:
    bad: list[Reply] = [sends(429, Retry_After="3"), closes, says(question), sends(503), stays_silent, says(question)]
    with serving(*bad, says(question)) as service:
        model = LanguageModel(url=service.url, timeout=0.5)
        report = synthesize(collection, model, SynthesisConfig(), tmp_path / "out.jsonl", parallel=parallel)
    assert report.kept == DOCS
    assert len(service.prompts) == DOCS + 4


def test_what_was_done_stays_when_the_service_fails(collection: Collection, tmp_path: Path) -> None:
    out, config = tmp_path / "out.jsonl", SynthesisConfig()
    with serving(*[says(question)] * 8, sends(500)) as service:
        model = LanguageModel(url=service.url)
        with pytest.raises(ServiceFailed, match=r"answered 500 .*; 8 passages are done, and the same command goes on"):
            synthesize(collection, model, config, out, parallel=1, patience=0)
        service.replies = [says(question)]
        asked = len(service.prompts)
        with pytest.raises(BadInput, match="was started with other settings"):
            synthesize(collection, model, SynthesisConfig(seed=1), out)
        assert synthesize(collection, model, config, out).kept == DOCS
    assert len(service.prompts) - asked == DOCS - 8
    assert len({line["question"] for line in lines(out)}) == len(lines(out)) == DOCS


def test_a_model_that_asks_nothing(collection: Collection, tmp_path: Path) -> None:
    with serving(says("Sure!")) as service, pytest.raises(ServiceFailed, match=r"no question for 20 passages, but 'Sure!'"):
        synthesize(collection, LanguageModel(url=service.url), SynthesisConfig(), tmp_path / "out.jsonl", parallel=1)
    assert len(service.prompts) == 20


def test_nobody_there_is_told_at_once(collection: Collection, tmp_path: Path) -> None:
    with nobody() as url, pytest.raises(ServiceFailed, match="cannot be reached"):
        synthesize(collection, LanguageModel(url=url), SynthesisConfig(), tmp_path / "out.jsonl")


def test_a_killed_process_goes_on(collection: Collection, tmp_path: Path) -> None:
    """The service is slow for a while, so that the process is killed in the middle; nothing is lost and nothing twice."""

    def slowly(to: Answers, prompt: str) -> None:
        to.server.over.wait(0.05)
        says(question)(to, prompt)

    out, state = tmp_path / "out.jsonl", tmp_path / "out.jsonl.partial.json"
    with serving(slowly) as service:
        arguments = ["synthesize", str(collection.path), "--llm", service.url, "--to", str(out), "--parallel", "2", "--json"]
        command = [sys.executable, "-m", "trilens", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        while not (state.exists() and json.loads(state.read_text())["done"] >= 5) and time.monotonic() < deadline:
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        done = json.loads(state.read_text())["done"]
        assert 5 <= done < DOCS and not out.exists()
        before = Counter(service.prompts)
        finished = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(finished.stdout)["kept"] == DOCS
    assert f"{DOCS - done} requests with about" in finished.stderr
    questions = [line["question"] for line in lines(out)]
    assert sorted(questions) == sorted(f"Where is {name(number)}?" for number in range(DOCS))
    repeated = {prompt for prompt, times in Counter(service.prompts).items() if times > 1}
    assert repeated <= before.keys() and len(repeated) <= 3  # those whose answers were under way
