from typing import Any, Optional


class ConfigError(ValueError):
    """Invalid input: a file, a key, a value.

    str() is one line, `path:line:column: message`. For a dict, `path` is the dotted key. Unknown parts are None.
    """

    def __init__(
        self,
        text: str,
        path: Optional[str] = None,
        line: Optional[int] = None,
        column: Optional[int] = None,
        message: Optional[str] = None,
    ) -> None:
        super().__init__(text, path, line, column, message)
        self.path = path
        self.line = line
        self.column = column
        self.message = text if message is None else message

    def __str__(self) -> str:
        return self.args[0]


class Infeasible(Exception):
    """No answer exists: the model does not fit, nothing meets the objectives, or the machine lacks something.

    `reason` says why. `result` has the available numbers (of an estimate; of the nearest deployment of a plan), or is
    None.
    """

    def __init__(self, reason: str, result: Any = None) -> None:
        super().__init__(reason, result)
        self.reason = reason
        self.result = result

    def __str__(self) -> str:
        return self.reason


class RoofcastWarning(UserWarning):
    """A note that the program prints on stderr: a setting without effect, an assumption, an overload."""
