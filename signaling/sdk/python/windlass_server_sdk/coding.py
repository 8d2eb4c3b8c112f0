"""Dataclasses from JSON and to JSON."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_json(value: object) -> dict[str, object]:
    """The fields of a dataclass; of those that may be left out, the ones that are set."""
    said = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))  # type: ignore[arg-type]
    return {field.name: it for field, it in said if it is not None or field.default is dataclasses.MISSING}


def from_json(kind: type[T], value: object) -> T:
    """A dataclass from a JSON object. Other fields are ignored; ValueError if one of its own is missing."""
    if not isinstance(value, dict):
        raise ValueError(f"{kind.__name__}: not an object")
    hints = _hints(kind)  # type: ignore[arg-type]
    given = {name: _read(hint, value[name]) for name, hint in hints.items() if name in value}
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(str(error)) from error


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(hint: Any, value: Any) -> Any:  # noqa: ANN401
    if get_origin(hint) is Union and value is not None:
        hint = get_args(hint)[0]
    if dataclasses.is_dataclass(hint) and value is not None:
        return from_json(hint, value)  # type: ignore[arg-type]
    if get_origin(hint) is list and isinstance(value, list):
        return [_read(get_args(hint)[0], item) for item in value]
    return value
