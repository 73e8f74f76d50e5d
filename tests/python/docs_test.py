"""Runs every ```python block of a page in one namespace, one after the other; a ```text block behind it is what it
prints.

usage: docs_test.py PAGE.md
"""

import contextlib
import io
import pathlib
import re
import sys


def main():
    page = pathlib.Path(sys.argv[1])
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    names, ran, compared = {"__name__": "page"}, 0, 0
    printed = ""
    for language, text in blocks:
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, f"{page.name}, block {ran + 1}", "exec"), names)
            printed = out.getvalue()
            ran += 1
        elif language == "text":
            if printed != text:
                sys.exit(f"{page.name}: block {ran} prints\n{printed}and the page says\n{text}")
            compared += 1
    assert ran > 0 and compared > 0
    print(f"{ran} blocks run, {compared} compared")


main()
