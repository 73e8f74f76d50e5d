"""Base classes of results. The classes in roofcast.results are generated from the JSON Schema of each kind."""

import json
from typing import Any


def needed(module: str, what: str) -> Any:
    """Imports the module. Raises ImportError that says what needs it and how to install it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(
            f"{what} needs {module}: pip install {module}, or apt-get install python3-{module}", name=module
        ) from None


class Columns(dict[str, Any]):
    """Arrays of equal length by name."""

    def to_pandas(self) -> Any:
        """Converts to a pandas.DataFrame."""
        return needed("pandas", "to_pandas()").DataFrame(dict(self))


def array_of(values):
    """Numbers as float64 (None is NaN), booleans as bool, anything else as objects."""
    numpy = needed("numpy", "an array")
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return numpy.array(values, dtype=bool)
    if kinds <= {int, float, type(None)} and kinds != {type(None)}:
        return numpy.array([float("nan") if value is None else value for value in values], dtype=float)
    return numpy.array(values, dtype=object)


# The names of these parts are left out of column names; other parts add theirs.
_NAMELESS = {"parallelism", "precision", "cost", "keys", "result"}


def _flatten(record, prefix, row):
    for key, value in record.items():
        if isinstance(value, dict):
            _flatten(value, prefix if key in _NAMELESS else f"{prefix}{key}_", row)
        elif not isinstance(value, list):
            row[prefix + key] = value


def columns_of(records):
    """One entry per record; lists within records are left out."""
    rows = []
    names = {}
    for record in records:
        row = {}
        _flatten(record, "", row)
        rows.append(row)
        names.update(dict.fromkeys(row))
    return Columns((name, array_of([row.get(name) for row in rows])) for name in names)


class Part:
    """An object within a result. `_SHAPE` has (attribute, key, class of its entries or None) for each field."""

    _SHAPE = ()

    @classmethod
    def _of(cls, data):
        self = object.__new__(cls)
        values = self.__dict__
        for name, key, make in cls._SHAPE:
            values[name] = _made(make, data.get(key))
        return self


def _made(make, value):
    if make is None or value is None:
        return value
    if isinstance(value, list):
        return [make._of(entry) for entry in value]
    return make._of(value)


class _Stored:
    """A result read from a file; has the interface of _core.Answer."""

    reason = ""

    def __init__(self, data):
        self.to_dict = lambda: data
        self.value = data.get

    def to_json(self):
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"


class Result:
    """A result. Its attributes are the keys that `roofcast ... --format json` prints; they are created on demand."""

    _SHAPE = ()
    _POINTS = ()

    @classmethod
    def _of(cls, answer):
        self = object.__new__(cls)
        self.__dict__["_answer"] = answer
        return self

    @classmethod
    def from_dict(cls, data):
        """Restores a result from to_dict()."""
        return cls._of(_Stored(data))

    def __getattr__(self, name):  # called only for attributes that do not exist yet
        answer = self.__dict__.get("_answer")
        if answer is not None:
            for field, key, make in type(self)._SHAPE:
                if field == name:
                    value = _made(make, answer.value(key))
                    self.__dict__[name] = value
                    return value
            value = answer.value(name)  # a key that no class declares
            if value is not None:
                return value
        raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")

    def __reduce__(self):
        return type(self).from_dict, (self.to_dict(),)

    @property
    def reason(self) -> str:
        """Why no answer exists; empty if there is one."""
        return self._answer.reason

    def to_dict(self) -> dict[str, Any]:
        """The whole result, as json.loads() of the program's JSON."""
        return self._answer.to_dict()

    def to_json(self) -> str:
        """The text that `roofcast ... --format json` prints."""
        return self._answer.to_json()

    def columns(self) -> Columns:
        """numpy arrays by name, with one entry per point, deployment, rung, ...; for other results a single entry."""
        data = self.to_dict()
        for name in self._POINTS:
            if data.get(name):
                return columns_of(data[name])
        return columns_of([data])

    def to_pandas(self) -> Any:
        """columns() as a pandas.DataFrame."""
        return self.columns().to_pandas()
