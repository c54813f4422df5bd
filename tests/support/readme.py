"""The marked code blocks of README.md, run as they stand against `frazil serve` without any setting.

A block is marked by the line before it: `<!-- runs in: NAME -->`, where NAME is a Python environment of versions.toml.
"""

import os
import re
import shutil

import machine
import paths
import process
from process import Failed
from server import refuse_trouble, started, wait_until_ready

BLOCK = re.compile(
    r"^<!-- runs in: (?P<venv>\S+) -->\n+```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
INTERPRETERS = {"python": ["python", "-c"], "sh": ["bash", "-euo", "pipefail", "-c"]}
# What the README says, and where a server without settings listens.
PORT = 8181
URI = f"http://127.0.0.1:{PORT}"
WANTED = {"pyiceberg", "spark-4.1"}


def run(binary, log):
    blocks = list(BLOCK.finditer((paths.REPO / "README.md").read_text()))
    absent = WANTED - {block["venv"] for block in blocks}
    if absent:
        raise Failed(f"README.md has no block marked `<!-- runs in: … -->` for: {', '.join(sorted(absent))}")
    if not process.is_free(PORT):
        raise Failed(f"port {PORT} is taken, and the README's snippets name it")
    folder = paths.RUNS / "readme"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log_file = paths.LOGS / "readme.server.log"
    with started([binary, "serve"], log_file, cwd=folder) as child:
        wait_until_ready(URI, child, log_file)
        for block in blocks:
            run_block(block, folder, log)
    refuse_trouble(log_file, ())


def run_block(block, folder, log):
    tools = machine.venv(block["venv"], log)
    interpreter = INTERPRETERS.get(block["language"])
    if not interpreter:
        raise Failed(f"README.md: a marked block of language {block['language']}, not {' or '.join(INTERPRETERS)}")
    log.write(f"--- README.md, {block['venv']}\n{block['code']}---\n")
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    environment = machine.with_java(PATH=path, SPARK_LOCAL_IP="127.0.0.1")
    process.run([*interpreter, block["code"]], log, 600, cwd=folder, env=environment)
