"""Iceberg's REST compatibility kit: one run against a fresh server, judged by its reports."""

import shutil
import xml.etree.ElementTree as xml

import machine
import paths
from process import Failed
from server import serving

FOUND = 157
SKIPPED_AT_MOST = 10


def run(binary, suite, store, log):
    directory = paths.RUNS / suite / "maven"
    # The kit asks for locations of its own choice, all of them below this folder.
    with serving(binary, suite, store, allowed_locations=["file:/tmp"]) as frazil:
        arguments = [f"-D{name}={version}" for name, version in machine.VERSIONS["rck"].items()]
        arguments += [f"-Drck.directory={directory}", f"-Drck.uri={frazil.uri}/"]
        machine.maven(["test", "-f", paths.ENGINES / "rck" / "pom.xml", *arguments], log, 600)
        keep_reports(directory, suite)
    judge(directory / "surefire-reports", log)


def keep_reports(directory, suite):
    kept = paths.LOGS / f"{suite}-reports"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(directory / "surefire-reports", kept)


def judge(reports, log):
    """Raises unless the kit found all its tests, none failed, and no more were skipped than it skips by itself."""
    cases = [case for file in reports.glob("TEST-*.xml") for case in xml.parse(file).getroot().iter("testcase")]
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = [case for case in cases if case.find("skipped") is not None]
    for case in failed:
        log.write(f"FAILED {case.get('classname')}.{case.get('name')}: {reason(case)}\n")
    for case in skipped:
        log.write(f"skipped {case.get('classname')}.{case.get('name')}\n")
    counts = f"{len(cases)} found, {len(failed)} failed, {len(skipped)} skipped"
    log.write(f"{counts}\n")
    if len(cases) != FOUND or failed or len(skipped) > SKIPPED_AT_MOST:
        raise Failed(f"{counts}; wanted {FOUND}, 0, at most {SKIPPED_AT_MOST}")


def reason(case):
    told = next(found for kind in ("failure", "error") if (found := case.find(kind)) is not None)
    return (told.get("message") or told.text or "").strip().split("\n")[0][:300]
