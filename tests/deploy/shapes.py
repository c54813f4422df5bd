"""Custom resources and Compose files, checked against the types of the programs that read them."""

import os
import subprocess

import yaml


def refusals(resources, folder):
    """What the types say of these objects; nothing where each has its shape."""
    file = folder / "resources.yaml"
    file.write_text(yaml.safe_dump_all(resources))
    return refusals_of(file)


def refusals_of(file):
    told = subprocess.run([os.environ["SHAPES"], file], capture_output=True, text=True, timeout=60)
    assert told.returncode in (0, 1), told.stderr
    return told.stdout
