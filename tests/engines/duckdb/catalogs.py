"""The statements that let DuckDB into a catalog and into its store."""


def attach(name, uri, warehouse, login=None):
    return f"""ATTACH '{warehouse.name}' AS {name} (TYPE iceberg, ENDPOINT '{uri}', ACCESS_DELEGATION_MODE 'none',
        {authorization(login)})"""


def authorization(login):
    if not login:
        return "AUTHORIZATION_TYPE 'none'"
    scope = f", OAUTH2_SCOPE '{login.scope}'" if login.scope else ""
    # Without the endpoint's address DuckDB finds it by itself, and gets one token there, never another.
    return f"""OAUTH2_SERVER_URI '{login.token_uri}', CLIENT_ID '{login.client_id}',
        CLIENT_SECRET '{login.client_secret}'{scope}"""


def secret(s3):
    encrypted, _, host = s3.endpoint.partition("://")
    return f"""CREATE SECRET (TYPE s3, KEY_ID '{s3.access_key_id}', SECRET '{s3.secret_access_key}',
        ENDPOINT '{host}', REGION '{s3.region}', URL_STYLE 'path', USE_SSL {encrypted == "https"})"""
