"""The settings of docs/engines by which a client logs in, for the suite of that client."""

import re

import paths

BLOCK = re.compile(r"^<!-- logs in: (?P<who>\w+) -->\n+```\w+\n(?P<settings>.*?)^```$", re.MULTILINE | re.DOTALL)


def page(engine):
    return paths.REPO / "docs" / "engines" / f"{engine}.md"


def logging_in(engine, uri, login):
    """What the page of an engine says for the kind of login, with the names and addresses of this run."""
    told = {block["who"]: block["settings"] for block in BLOCK.finditer(page(engine).read_text())}
    settings = told.get("client" if login.provider else "principal") or told.get("token")
    assert settings, f"{page(engine)} does not say how to log in"
    for written, meant in {
        "http://127.0.0.1:8181": uri,
        "https://idp.example/token": login.token_uri,
        "fp_…": login.client_id,
        "fs_…": login.client_secret,
        "my-client": login.client_id,
        "my-secret": login.client_secret,
        "my-scope": login.scope or "",
    }.items():
        settings = settings.replace(written, meant)
    return settings
