"""Checks JSON against the parameter types of OpenAI's and Anthropic's SDKs. Those are TypedDicts, made for type
checkers. Here pydantic reads them, after three changes: iterators, which it would look into only when they are used, are
lists; the models of answers, which take any field and which the SDKs allow in requests too, are left out; and a field
that a type does not have is an error."""

import collections.abc
import importlib
import os
import pkgutil
import sys
import types
import typing

import anthropic.types
import openai.types
import typing_extensions
from pydantic import BaseModel, ConfigDict, TypeAdapter

WRAPPERS = (typing.Required, typing.NotRequired, typing_extensions.Required, typing_extensions.NotRequired)
LAZY = (collections.abc.Iterable, openai._types.SequenceNotStr, anthropic._types.SequenceNotStr)


def _make_strict(package):
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(found.name)
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(package.__name__)]
    items = {id(item): item for module in modules for item in vars(module).values() if typing_extensions.is_typeddict(item)}
    for typed_dict in [item for item in items.values() if item.__module__.startswith(package.__name__)]:
        try:
            hints = typing_extensions.get_type_hints(typed_dict, include_extras=True)
        except NameError:
            # Options of websockets, of types that only a checker sees. What a request needs fails in its adapter.
            continue
        typed_dict.__annotations__ = {name: _strict(hint) for name, hint in hints.items()}
        typed_dict.__pydantic_config__ = ConfigDict(extra="forbid")


def _strict(hint):
    origin, arguments = typing_extensions.get_origin(hint), typing_extensions.get_args(hint)
    if origin in LAZY:
        return typing.List[_strict(arguments[0])]
    if origin is list:
        return typing.List[_strict(arguments[0])]
    if origin in (typing.Union, types.UnionType):
        sent = [one for one in arguments if not (_is_of_answers(one) or _is_file(one))]
        return typing.Union[tuple(_strict(one) for one in sent or arguments)]
    if origin in WRAPPERS:
        return origin[_strict(arguments[0])]
    if origin is typing.Annotated:
        return typing.Annotated[(_strict(arguments[0]), *hint.__metadata__)]
    return hint


def _is_of_answers(hint):
    if typing_extensions.get_origin(hint) in (typing.Annotated, typing.Union):
        inner = typing_extensions.get_args(hint)
        return _is_of_answers(inner[0])
    return isinstance(hint, type) and issubclass(hint, BaseModel)


def _is_file(hint):
    """One that is open, or its path: JSON has neither."""
    return typing_extensions.get_origin(hint) in (typing.IO, os.PathLike) or hint in (bytes, os.PathLike)


# Before the first adapter, which would keep what it found.
for package in (anthropic.types, openai.types):
    _make_strict(package)


def adapter(name, module):
    """Of the parameters of a call that does not stream; whether it does is no business of a codec."""
    return TypeAdapter(getattr(importlib.import_module(module), name))
