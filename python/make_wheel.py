"""Packs the built package, its specs and the shared libraries it needs into a wheel.

usage: make_wheel.py BUILT_PACKAGE CONFIGS VERSION OUT_FOLDER      (with the Python that the package was built for)
"""

import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

# Libraries that a bare machine may lack. The C and C++ libraries are the machine's own.
BUNDLED = re.compile(r"lib(yaml-0|fmt|tbb|sqlite3|nlopt\w*)\.so")

METADATA = """Metadata-Version: 2.1
Name: roofcast
Version: {version}
Summary: Forecasts how a large language model will serve: TTFT, TPOT, throughput, memory, cost, energy
License: Apache-2.0
License-File: copyright
Requires-Python: >={python}
Provides-Extra: arrays
Requires-Dist: numpy ; extra == 'arrays'
"""
WHEEL = """Wheel-Version: 1.0
Generator: roofcast
Root-Is-Purelib: false
Tag: {tag}
"""


def needed_libraries(module):
    """(name, path) of the shared libraries to bundle, from ldd's "name => path (address)"."""
    lines = subprocess.run(["ldd", module], check=True, capture_output=True, text=True).stdout.splitlines()
    for line in lines:
        name, _, path = line.strip().partition(" => ")
        if BUNDLED.match(name):
            yield name, path.split(" (")[0]


def main():
    package, configs, version, out = sys.argv[1:]
    python = "{}.{}".format(*sys.version_info)
    interpreter = "cp" + python.replace(".", "")
    tag = f"{interpreter}-{interpreter}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder, f"roofcast-{version}")
        staged = root / "roofcast"
        shutil.copytree(package, staged, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(configs, staged / "configs")
        (module,) = staged.glob("_core*.so")
        (staged / "lib").mkdir()
        for name, path in needed_libraries(module):
            shutil.copy(path, staged / "lib" / name)
        subprocess.run(["strip", module, *(staged / "lib").iterdir()], check=True)
        info = root / f"roofcast-{version}.dist-info"
        info.mkdir()
        shutil.copy(pathlib.Path(__file__).parent.parent / "packaging/copyright", info)  # also of the bundled libraries
        (info / "METADATA").write_text(METADATA.format(version=version, python=python))
        (info / "WHEEL").write_text(WHEEL.format(tag=tag))
        pathlib.Path(out).mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "wheel", "pack", root, "-d", out], check=True)


main()
