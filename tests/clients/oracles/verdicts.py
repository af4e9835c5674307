"""Gathers what a vendor's types say of everything that we wrote to its format, so that one run shows all of it."""

from pydantic import BaseModel, ValidationError

import exceptions


class Verdicts:
    """The faults found in one kind of golden file of one format."""

    def __init__(self, kind, target, excused):
        self.kind, self.target, self.excused = kind, target, excused
        self.count, self.faults, self.needed = 0, [], set()

    def add(self, fixture, found):
        """`found` lists what is wrong; an empty list is a good verdict."""
        self.count += 1
        if not found:
            return
        if (self.target, fixture) in self.excused:
            self.needed.add((self.target, fixture))
        elif (self.kind, self.target, fixture) not in exceptions.FAULTS:
            self.faults.append(f"{fixture}: " + "; ".join(found[:4]))

    def check(self, least):
        assert self.count >= least, f"only {self.count} {self.kind} in {self.target}"
        assert not self.faults, f"{len(self.faults)} of {self.count}:\n" + "\n".join(self.faults)
        stale = {key for key in self.excused if key[0] == self.target} - self.needed
        assert not stale, f"exceptions that nothing needs: {stale}"


def flaws(adapter, value):
    """What pydantic finds wrong with a value."""
    try:
        adapter.validate_python(value)
        return []
    except ValidationError as error:
        return [f"{_place(one['loc'])} {one['msg']}: {one['input']!r:.60}" for one in error.errors(include_url=False)]


def _place(location):
    # The names of unions' members are as long as their unions.
    return ".".join(str(step) for step in location if len(str(step)) < 60)


def extras(model, place=""):
    """Fields that a lenient model took without having them."""
    found = []
    if isinstance(model, BaseModel):
        found += [f"{place}.{name}" for name in model.model_extra or {}]
        for name in type(model).model_fields:
            found += extras(getattr(model, name), f"{place}.{name}")
    elif isinstance(model, list):
        for index, item in enumerate(model):
            found += extras(item, f"{place}[{index}]")
    return found
