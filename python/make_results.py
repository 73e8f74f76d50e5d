"""Writes roofcast/results.py from the JSON Schema of every kind of result.

usage: make_results.py SCHEMAS_FOLDER OUT.py
"""

import json
import keyword
import pathlib
import sys

HEADER = '''"""The classes of results, one per kind, and the classes of their parts.

Attributes are the keys that `roofcast ... --format json` prints; docs/metrics.md describes them. Attributes that a
result lacks are None. A key that no class declares is an attribute, too, and is in to_dict().
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Optional

from roofcast._base import Columns, Part, Result

'''
TYPES = {"number": "float", "integer": "int", "string": "str", "boolean": "bool", "object": "dict", "array": "list"}
# columns() shows the entries of the first of these lists that exists.
POINTS = ("points", "deployments", "services", "rungs", "metrics", "groups", "statistics", "spreads", "coverage",
          "entries")
KINDS = ("estimate", "simulation", "sweep", "plan", "ladder", "comparison", "validation", "calibration",
         "services_plan", "lecture", "catalog", "catalog_entry")


def camel(text):
    return "".join(part.capitalize() for part in text.split("_"))


def singular(name):
    if name.endswith("ies"):
        return name[:-3] + "y"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


class Classes:
    """All objects of all schemas; equal objects of one name become one class. Imports are plain documents without a class."""

    def __init__(self, schemas):
        self.schemas = schemas
        self.shapes = {}  # short name -> different objects of that name
        for kind in KINDS:
            self.collect(schemas[kind], schemas[kind])
        self.written = {}
        self.text = []

    def resolve(self, root, schema):
        if "$ref" not in schema:
            return schema
        for part in schema["$ref"].removeprefix("#/").split("/"):
            root = root[part]
        return root

    def parts(self, root, schema):
        """(key, its object, whether it is a list) for every key that has declared objects."""
        for key, value in schema.get("properties", {}).items():
            value = self.resolve(root, value)
            if value.get("type") == "array" and "properties" in value.get("items", {}):
                yield key, value["items"], True
            elif "properties" in value:
                yield key, value, False

    def collect(self, root, schema):
        for key, inner, is_list in self.parts(root, schema):
            shapes = self.shapes.setdefault(self.short(root, schema, key, is_list), [])
            if inner not in shapes:
                shapes.append(inner)
            self.collect(root, inner)

    def short(self, root, schema, key, is_list):
        reference = schema["properties"][key].get("$ref")
        if reference:  # "#/properties/deployments/items": named after that list
            key, is_list = reference.split("/")[-2], True
        return camel(singular(key) if is_list else key)

    def name(self, owner, short, inner):
        if short in ("Result", "Part", "Columns", *map(camel, KINDS)) or len(self.shapes[short]) > 1:
            short = owner + short
        other = self.written.get(short)
        assert other is None or other == inner, f"two classes would be named {short}"
        return short

    def write(self, root, name, schema, base, lines):
        shape, fields = [], []
        required = schema.get("required", [])
        inner_of = {key: (inner, is_list) for key, inner, is_list in self.parts(root, schema)}
        for key, value in schema["properties"].items():
            field = key + "_" if keyword.iskeyword(key) else key
            if key in inner_of:
                inner, is_list = inner_of[key]
                made = self.name(name, self.short(root, schema, key, is_list), inner)
                if made not in self.written:
                    self.written[made] = inner
                    self.write(root, made, inner, "Part", ['    """`%s` of %s."""' % (key, name), ""])
                kind = f"list[{made}]" if is_list else made
            else:
                made = None
                kind = self.type_of(value)
            if key not in required and not kind.startswith("Optional") and kind != "Any":
                kind = f"Optional[{kind}]"
            fields.append(f"    {field}: {kind}")
            shape.append(f'        ("{field}", "{key}", {made}),')
        self.text.append("@dataclass(frozen=True)")
        self.text.append(f"class {name}({base}):")
        self.text += lines + fields
        self.text += ["", "    _SHAPE: ClassVar = (", *shape, "    )", "", ""]

    def type_of(self, schema):
        if "const" in schema:
            return type(schema["const"]).__name__
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return f"Optional[{TYPES[kinds[0]]}]"
        if kinds == "array" and "type" in schema.get("items", {}):
            return f"list[{TYPES[schema['items']['type']]}]"
        return TYPES.get(kinds, "Any")

    def kind(self, kind):
        schema = self.schemas[kind]
        points = tuple(name for name in POINTS if name in schema["properties"])
        lines = ['    """A result of kind `%s`, schema %d."""' % (kind, schema["properties"]["schema"]["const"]), ""]
        if points:
            lines += [f"    _POINTS: ClassVar = {points!r}", ""]
        if kind == "simulation":
            lines += ["    per_request: ClassVar[Optional[Columns]] = None  # of simulate(per_request=True)", ""]
        self.write(schema, camel(kind), schema, "Result", lines)


def main():
    folder, out = map(pathlib.Path, sys.argv[1:])
    schemas = {kind: json.loads((folder / f"{kind}.json").read_text()) for kind in KINDS}
    classes = Classes(schemas)
    for kind in KINDS:
        classes.kind(kind)
    tail = ["CLASSES = {"] + [f'    "{kind}": {camel(kind)},' for kind in KINDS] + ["}"]
    tail += ["SCHEMAS = {"]
    tail += [f'    "{kind}": {schemas[kind]["properties"]["schema"]["const"]},' for kind in KINDS] + ["}", ""]
    out.write_text(HEADER + "\n" + "\n".join(classes.text + tail))


main()
