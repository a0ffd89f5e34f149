"""What schemathesis must know beside the document."""

import os

import schemathesis


@schemathesis.hook
def filter_case(context, case):
    """Keeps it from taking its own key away: every later answer would be a 401."""
    path_parameters = case.path_parameters or {}
    return path_parameters.get("key_id") != os.environ["FILESTORE_KEY_ID"]


@schemathesis.hook
def map_body(context, body):
    """Writes whole numbers as such. For JSON Schema 7.0 is an integer; the server takes integers only in
    the form of an integer, so that nothing is rounded on the way to it."""
    return whole(body)


@schemathesis.hook
def map_query(context, query):
    """Waits for no event: a page without events would take up to 30 seconds."""
    if query and isinstance(query.get("wait"), int) and query["wait"] > 0:
        query["wait"] = 0
    return query


def whole(value):
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: whole(member) for key, member in value.items()}
    if isinstance(value, list):
        return [whole(member) for member in value]
    return value
