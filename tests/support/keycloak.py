"""An OpenID provider of the tests' own: Keycloak on a free loopback port, with one client that may log in as itself."""

import contextlib
import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass

import machine
import process
from process import Failed

READY_WITHIN_S = 600
REALM, ADMIN, ADMIN_SECRET = "frazil", "admin", "admin"
# Whom the tokens are meant for, and the group that they tell of.
AUDIENCE, GROUP = "frazil", "streams"


@dataclass(frozen=True)
class Keycloak:
    """A running provider."""

    address: str
    client_id: str = "engines"
    client_secret: str = "keycloak-tests-secret"

    @property
    def issuer(self):
        return f"{self.address}/realms/{REALM}"

    @property
    def token_uri(self):
        return token_uri(self.issuer)

    @property
    def principal(self):
        """The user name of the client, as the claim `preferred_username` has it."""
        return f"service-account-{self.client_id}"


def token_uri(issuer):
    return f"{issuer}/protocol/openid-connect/token"


@contextlib.contextmanager
def running(log, lifetime_s):
    """A fresh provider for the length of the block, whose access tokens live that long."""
    home = machine.unpacked("keycloak", log)
    provider = Keycloak(f"http://127.0.0.1:{process.free_port()}")
    port = urllib.parse.urlsplit(provider.address).port
    argv = [home / "bin" / "kc.sh", "start-dev", "--db=dev-mem", "--cache=local"]
    argv += ["--http-host=127.0.0.1", f"--http-port={port}"]
    environment = machine.with_java(
        KC_BOOTSTRAP_ADMIN_USERNAME=ADMIN,
        KC_BOOTSTRAP_ADMIN_PASSWORD=ADMIN_SECRET,
        JAVA_OPTS_KC_HEAP="-Xms128m -Xmx512m",
    )
    child = process.start(argv, log, env=environment)
    try:
        process.wait_until_ready(child, "Keycloak", lambda: is_ready(provider), READY_WITHIN_S, log.name)
        make_realm(provider, lifetime_s)
        yield provider
    finally:
        process.stop(child)


def is_ready(provider):
    try:
        urllib.request.urlopen(f"{provider.address}/realms/master", timeout=5).close()
    except OSError:
        return False
    return True


def make_realm(provider, lifetime_s):
    form = {"grant_type": "password", "client_id": "admin-cli", "username": ADMIN, "password": ADMIN_SECRET}
    content = urllib.parse.urlencode(form).encode()
    with urllib.request.urlopen(token_uri(f"{provider.address}/realms/master"), content, timeout=30) as answer:
        token = json.load(answer)["access_token"]
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    content = json.dumps(realm(provider, lifetime_s)).encode()
    request = urllib.request.Request(f"{provider.address}/admin/realms", content, headers)
    try:
        urllib.request.urlopen(request, timeout=60).close()
    except urllib.error.HTTPError as refusal:
        raise Failed(f"Keycloak made no realm: {refusal.read().decode(errors='replace')}") from refusal


def realm(provider, lifetime_s):
    """A realm as Keycloak imports it: one client, its own user, and what its tokens say."""
    client = {
        "clientId": provider.client_id,
        "secret": provider.client_secret,
        "publicClient": False,
        "serviceAccountsEnabled": True,
        "standardFlowEnabled": False,
        "protocolMappers": [
            mapper("audience", "oidc-audience-mapper", {"included.custom.audience": AUDIENCE}),
            mapper("groups", "oidc-group-membership-mapper", {"claim.name": "groups", "full.path": "false"}),
        ],
    }
    user = {
        "username": provider.principal,
        "enabled": True,
        "serviceAccountClientId": provider.client_id,
        "groups": [f"/{GROUP}"],
    }
    return {
        "realm": REALM,
        "enabled": True,
        "accessTokenLifespan": lifetime_s,
        "groups": [{"name": GROUP}],
        "clients": [client],
        "users": [user],
    }


def mapper(name, kind, settings):
    """Something that puts a claim into access tokens."""
    config = {"access.token.claim": "true", **settings}
    return {"name": name, "protocol": "openid-connect", "protocolMapper": kind, "config": config}

