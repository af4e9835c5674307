"""Bedrock's wire by AWS's own service model: what botocore's validator checks, and the names, lengths and patterns that
it leaves to the service."""

import re

import botocore.session
from botocore.validate import ParamValidator

MODEL = botocore.session.get_session().get_service_model("bedrock-runtime")
REQUEST = MODEL.operation_model("Converse").input_shape
ANSWER = MODEL.operation_model("Converse").output_shape
EVENTS = MODEL.shape_for("ConverseStreamOutput")


def flaws(value, shape):
    report = ParamValidator().validate(value, shape)
    found = [report.generate_report()] if report.has_errors() else []
    return found + list(_finer(shape, value, ""))


def _finer(shape, value, place):
    most = shape.metadata.get("max")
    if most is not None and isinstance(value, (str, list)) and len(value) > most:
        yield f"{place}: longer than {most}"
    if shape.type_name == "structure" and isinstance(value, dict) and not shape.is_document_type:
        for name, item in value.items():
            if name in shape.members:
                yield from _finer(shape.members[name], item, f"{place}.{name}")
    elif shape.type_name == "list" and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _finer(shape.member, item, f"{place}[{index}]")
    elif shape.type_name == "string" and isinstance(value, str):
        pattern = shape.metadata.get("pattern")
        if shape.enum and value not in shape.enum:
            yield f"{place}: {value!r} is none of {shape.enum}"
        if pattern and not re.fullmatch(pattern, value):
            yield f"{place}: {value!r:.60} does not match {pattern}"
