"""The marked code blocks of README.md and docs/engines, run as they stand against `frazil serve` without any setting.

A block is marked by the line before it: `<!-- runs in: NAME -->`. NAME is a Python environment of versions.toml for
blocks of Python and shell, and one of `ENGINES` for those that only an engine can run.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Callable

import flink
import javascript
import libraries
import machine
import paths
import process
from process import Failed
from server import refuse_trouble, started, wait_until_ready

BLOCK = re.compile(
    r"^<!-- runs in: (?P<name>\S+) -->\n+```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
QUOTE = re.compile(r"^```(?:sql|properties)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INTERPRETERS = {"python": ["python", "-c"], "sh": ["bash", "-euo", "pipefail", "-c"]}
# Engines that need more than an interpreter: name -> what runs a block's text in a folder.
ENGINES: dict[str, Callable[[str, os.PathLike, object], None]] = {
    "flink-2.1": flink.run_script,
    "go": libraries.run_go,
    "javascript": javascript.run_page,
    "rust": libraries.run_rust,
}
# What the documents say, and where a server without settings listens.
PORT = 8181
URI = f"http://127.0.0.1:{PORT}"


def run(binary, suite, pages, wanted, log):
    """Runs the blocks of `pages` in order. Raises `Failed` where one of the names `wanted` has no block."""
    blocks = [(page, block) for page in pages for block in BLOCK.finditer(page.read_text())]
    if not blocks:
        raise Failed("no block is marked `<!-- runs in: … -->`")
    absent = set(wanted) - {block["name"] for _, block in blocks}
    if absent:
        raise Failed(f"no block is marked `<!-- runs in: … -->` for: {', '.join(sorted(absent))}")
    with served_as_documented(binary, suite) as folder:
        for page, block in blocks:
            log.write(f"--- {page.relative_to(paths.REPO)}, {block['name']}\n{block['code']}---\n")
            run_block(block, folder, log)


def check_quotes(document, pages):
    """Raises `Failed` where an unmarked block of settings in `document` stands in none of the pages that are run."""
    known = "".join(page.read_text() for page in pages)
    for code in QUOTE.findall(document.read_text()):
        if code not in known:
            raise Failed(f"{document.name} has settings that no page has: {code.strip().splitlines()[0]} …")


@contextlib.contextmanager
def served_as_documented(binary, suite):
    """A server without settings, in a fresh folder; gives the folder."""
    if not process.is_free(PORT):
        raise Failed(f"port {PORT} is taken, and the documents name it")
    folder = paths.RUNS / suite
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log_file = paths.LOGS / f"{suite}.server.log"
    with started([binary, "serve"], log_file, cwd=folder) as child:
        wait_until_ready(URI, child, log_file)
        yield folder
    refuse_trouble(log_file, ())


def run_block(block, folder, log):
    if block["name"] in ENGINES:
        ENGINES[block["name"]](block["code"], folder, log)
        return
    tools = machine.venv(block["name"], log)
    interpreter = INTERPRETERS.get(block["language"])
    if not interpreter:
        raise Failed(f"a marked block of language {block['language']}, not {' or '.join(INTERPRETERS)}")
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    environment = machine.with_java(PATH=path, SPARK_LOCAL_IP="127.0.0.1", DO_NOT_TRACK="1")
    process.run([*interpreter, block["code"]], log, 600, cwd=folder, env=environment)
