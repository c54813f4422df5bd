"""The statement that makes a database of the catalog."""


def create(name, uri, warehouse, login=None):
    keys, more = "", ""
    if s3 := warehouse.s3:
        keys = f", '{s3.access_key_id}', '{s3.secret_access_key}'"
        more = f", storage_endpoint = '{s3.endpoint}', region = '{s3.region}'"
    if login:
        more += f", catalog_credential = '{login.credential}'"
    if login and login.provider:
        more += f", oauth_server_uri = '{login.token_uri}', auth_scope = '{login.scope}'"
    return f"""CREATE DATABASE {name} ENGINE = DataLakeCatalog('{uri}/v1'{keys})
               SETTINGS catalog_type = 'rest', warehouse = '{warehouse.name}', vended_credentials = 0{more}"""
