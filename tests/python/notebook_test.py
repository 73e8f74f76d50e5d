"""Runs a notebook: by Jupyter where nbconvert and ipykernel are there, else its cells one after the other.

usage: notebook_test.py NOTEBOOK.ipynb
"""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile


def main():
    path = pathlib.Path(sys.argv[1])
    if all(importlib.util.find_spec(name) for name in ("nbconvert", "ipykernel")):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "jupyter", "nbconvert", "--to", "notebook", "--execute", "--output-dir",
                            folder, str(path)], check=True)
        print("run by Jupyter")
        return
    names = {"__name__": "notebook"}
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
    print(f"{len(cells)} cells run without Jupyter")


main()
