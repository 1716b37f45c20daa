"""Lets part of the generated calls name things that are there: of random ids alone, every call would be answered 404.

MUSTER_KNOWN is a JSON object: for every operationId or name of a parameter, the values that are known. An operation goes before a parameter.
"""

import hashlib
import json
import os
import re
from datetime import datetime

import schemathesis

KNOWN = json.loads(os.environ["MUSTER_KNOWN"])
GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{1,18}", re.IGNORECASE)

REAL = {value for values in KNOWN.values() for value in values}


def is_moment(value):
    """Whether it is a time with its zone: what is no time on purpose stays as it is."""
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def known_for(value, names):
    """One of the known values, or the one that was generated: the same at every run.

    Schemathesis also passes on what it saw in answers: what another operation is to find as it is stays out of this one's hands.
    """
    values = next((KNOWN[name] for name in names if name in KNOWN), [])
    place = int.from_bytes(hashlib.sha256(str(value).encode()).digest()[:4], "big")
    # One in four stays what it is, and so is most likely of nothing.
    return values[place // 4 % len(values)] if values and (value in REAL or place % 4) else value


@schemathesis.hook
def before_call(ctx, case, kwargs):
    operation_id = case.operation.definition.raw.get("operationId")
    for container in (case.path_parameters, case.query, case.body):
        # What is malformed on purpose stays so.
        for name, value in (container.items() if isinstance(container, dict) else ()):
            if name in ("id", "company_id") and isinstance(value, str) and GUID.fullmatch(value):
                container[name] = known_for(value, (f"{operation_id}.{name}", name))
            if name == "refresh_token" and isinstance(value, str) and value.isascii() and value.isprintable() and value:
                container[name] = known_for(value, (name,))
            if name == "until" and is_moment(value):
                container[name] = known_for(value, (f"{operation_id}.{name}",))
            if name == "environment" and value == "production":
                container[name] = known_for(value, (name,))
            if name == "resource" and isinstance(value, str) and re.fullmatch(r"[a-z][a-z0-9_]*", value):
                container[name] = known_for(value, (name,))
