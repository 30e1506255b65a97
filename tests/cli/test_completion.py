from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.cli.rig import Command, clean_environment, spawn
from tests.e2e.served import Caller, Served, served
from topics import sync
from topics.cli import COMMANDS


@pytest.fixture
def bare(capfd: pytest.CaptureFixture[str]) -> Command:
    return Command(capfd, [])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_knows_every_command(bare: Command, shell: str) -> None:
    said = bare("completion", shell)
    assert (said.code, said.err) == (0, "")
    assert [name for name in COMMANDS if name not in said.out] == []
    assert "durability" in said.out and "fsync" in said.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_takes_the_script(bare: Command, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    script = bare("completion", shell).out
    done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@cache
def script_of(shell: str) -> str:
    return spawn("completion", shell).stdout


def complete_in_bash(words: list[str], url: str = "") -> set[str]:
    """What the script offers for the last word."""
    script = script_of("bash")
    line = " ".join(f"'{word}'" for word in words)
    ask = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _topics_with_colons; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    # By stdin: the script is longer than one argument of a command may be.
    text = f"{script}\n{ask}\n"
    done = subprocess.run(["bash"], input=text, capture_output=True, text=True, env=environment(url))
    assert done.stderr == ""
    return set(done.stdout.split())


def environment(url: str) -> dict[str, str]:
    """With the `topics` of this interpreter first, for scripts that call it."""
    variables = clean_environment()
    path = f"{Path(sys.executable).parent}:{variables['PATH']}"
    return variables | {"PATH": path, "TOPICS_URL": url or "http://127.0.0.1:9"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["topics", "ta"], {"tail", "table"}),
        (["topics", "topic", "c"], {"create", "config"}),
        (["topics", "tail", "--fo"], {"--follow"}),
        (["topics", "topic", "create", "x", "--durability", "f"], {"fsync"}),
    ],
)
def test_bash_completes(words: list[str], expected: set[str]) -> None:
    assert complete_in_bash(words) == expected


@pytest.fixture(scope="module")
def named(server: Served) -> Served:
    """A server with some topics, one of them a queue."""
    with server.connect() as caller:
        for name, config in {"seen:one": {}, "seen:two": {}, "seen-jobs": {"type": "queue"}}.items():
            assert caller.ask("PUT", f"/v0/topics/{name}", config)[0] == 201
        body = {"source": "seen:one", "dest": "seen:two"}
        assert caller.ask("PUT", "/v0/routers/seen:one-%3Eseen:two", body)[0] == 201
        table = {"format": "delta", "location": "/d", "key": ["id"]}
        assert caller.ask("PUT", "/v0/tables/seen-table", table)[0] == 201
        pipeline = {"definition": 'INSERT INTO TOPIC "seen:three" SELECT tag FROM STREAM "seen:one"'}
        assert caller.ask("PUT", "/v0/pipelines/seen-pipeline", pipeline)[0] == 201
    return server


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tail", "seen"], {"seen:one", "seen:two", "seen-jobs"}),
        (["tail", "seen-jobs", "seen", ":", "t"], {"two"}),
        (["tail", "seen", ":"], {"one", "two"}),
        (["topic", "show", "seen-"], {"seen-jobs"}),
        (["queue", "show", "seen"], {"seen-jobs"}),
        (["work", "--queue", "seen"], {"seen-jobs"}),
        (["router", "show", "seen", ":", "one"], {"one-\\>seen:two"}),
        (["router", "put", "seen-"], {"seen-jobs"}),
        (["table", "show", "seen-"], {"seen-table"}),
        (["pipeline", "status", "seen-"], {"seen-pipeline"}),
        (["topic", "create", "seen"], set()),
        (["tail", "--dir", "elsewhere", "seen"], set()),
    ],
)
def test_bash_asks_the_server_for_names(named: Served, words: list[str], expected: set[str]) -> None:
    assert complete_in_bash(["topics", *words], named.url) == expected


def test_the_address_may_be_on_the_line(named: Served) -> None:
    host, _, port = named.url.rpartition(":")
    scheme, _, host = host.partition(":")
    words = ["topics", "read", "--url", scheme, ":", host, ":", port, "seen-"]
    assert complete_in_bash(words) == {"seen-jobs"}


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
def test_fish_asks_the_server_for_names(named: Served) -> None:
    script = script_of("fish")
    ask = "complete -C 'topics tail seen:'"
    text = f"{script}\n{ask}\n"
    done = subprocess.run(["fish"], input=text, capture_output=True, text=True, env=environment(named.url))
    assert set(done.stdout.split()) == {"seen:one", "seen:two"}


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "no address", "http://[", "ftp://x"])
def test_a_server_that_is_not_there_completes_nothing_and_says_nothing(bare: Command, url: str) -> None:
    said = bare("__complete", "tail", "--url", url, "o")
    assert (said.code, said.out.split(), said.err) == (0, ["begin"], "")


def test_a_key_that_is_refused_completes_nothing(bare: Command, tmp_path: Path) -> None:
    keys = {"TOPICS_API_KEYS": "secret"}
    with served(tmp_path / "data", variables=keys) as running, Caller(running.url, "secret") as caller:
        assert caller.ask("PUT", "/v0/topics/hidden", {})[0] == 201
        line = ("__complete", "tail", "--url", running.url, "--key")
        assert bare(*line, "wrong", "").out.split() == ["begin"]
        assert bare(*line, "secret", "").out.split() == ["begin", "hidden"]


def test_heaps_and_queues_are_not_taken_for_each_other(bare: Command, server: Served, topic: str) -> None:
    with sync.connect(server.url) as client:
        client.queue(f"{topic}-queue").create()
        client.heap(f"{topic}-heap").create()

    def offered(*words: str) -> list[str]:
        _, *names = bare("__complete", *words, "--url", server.url, topic).out.split()
        return names

    assert offered("heap", "show") == [f"{topic}-heap"]
    assert offered("queue", "show") == [f"{topic}-queue"]
    assert sorted(offered("tail")) == [f"{topic}-heap", f"{topic}-heap.dlq", f"{topic}-queue"]
