"""Who a client says it is: a principal of the catalog's own, or one that an OpenID provider knows."""

import dataclasses
import json
import os
import urllib.parse
import urllib.request
from dataclasses import dataclass

# What a provider, Frazil among them, says of a secret that is wrong.
WRONG_SECRET = "invalid_client|unauthorized_client"


@dataclass(frozen=True)
class Login:
    """What a client is given to log in with. `principal` is what the catalog calls it then.

    Where `provider` is None, the tokens come from the catalog itself, and clients know where to ask for them.
    """

    principal: str
    client_id: str
    client_secret: str
    token_uri: str
    provider: str | None = None
    scope: str | None = None

    def __str__(self):
        return self.provider or "own"

    @property
    def credential(self):
        return f"{self.client_id}:{self.client_secret}"

    def properties(self):
        """The catalog properties of Iceberg's own clients."""
        properties = {"credential": self.credential}
        if self.provider:
            properties |= {"oauth2-server-uri": self.token_uri, "scope": self.scope, "token-exchange-enabled": "false"}
        return properties

    def with_wrong_secret(self):
        return dataclasses.replace(self, client_secret="wrong")

    def token(self):
        """A fresh access token."""
        form = {"grant_type": "client_credentials", "client_id": self.client_id, "client_secret": self.client_secret}
        content = urllib.parse.urlencode(form).encode()
        with urllib.request.urlopen(self.token_uri, content, timeout=30) as answer:
            return json.load(answer)["access_token"]


def outside(provider):
    """The client that Keycloak knows."""
    return Login(
        provider.principal, provider.client_id, provider.client_secret, provider.token_uri, "keycloak", "profile"
    )


def environment(logins):
    """How the suite of a client is told of its logins."""
    return {"FRAZIL_LOGINS": json.dumps([dataclasses.asdict(login) for login in logins])}


def named_by_environment():
    """Those of FRAZIL_LOGINS."""
    return [Login(**login) for login in json.loads(os.environ.get("FRAZIL_LOGINS", "[]"))]
