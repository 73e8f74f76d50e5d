"""Builds the wheel and installs it into a separate environment, without a network.

usage: wheel_test.py MAKE_WHEEL PACKAGE CONFIGS VERSION
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

CHECK = """
import os, sys
import roofcast
from roofcast import _core
assert roofcast.__file__.startswith(sys.prefix), roofcast.__file__
assert _core.configs().startswith(sys.prefix), _core.configs()
print(_core.__file__)
print(roofcast.estimate(model="llama-3.1-8b", gpu="h100-sxm", batch=8).to_json(), end="")
"""


def run(*words, **options):
    done = subprocess.run(words, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def main():
    try:
        import ensurepip  # noqa: F401
        import wheel  # noqa: F401
    except ImportError as error:
        print(f"SKIPPED: {error}")
        sys.exit(77)
    make_wheel, package, configs, version = sys.argv[1:]
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "ROOFCAST_CONFIGS")}
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, make_wheel, package, configs, version, folder)
        (wheel_file,) = pathlib.Path(folder).glob("roofcast-*.whl")
        names = zipfile.ZipFile(wheel_file).namelist()
        for name in ("roofcast/py.typed", "roofcast/__init__.pyi", "roofcast/configs/models/llama-3.1-8b.yaml"):
            assert name in names, name
        run(sys.executable, "-m", "venv", f"{folder}/venv", env=clean)
        python = f"{folder}/venv/bin/python"
        run(python, "-m", "pip", "install", "--no-index", "--disable-pip-version-check", wheel_file, env=clean)
        module, text = run(python, "-c", CHECK, cwd=folder, env=clean).split("\n", 1)
        program = run(os.environ["ROOFCAST_PROGRAM"], "estimate", "--model", "llama-3.1-8b", "--gpu", "h100-sxm",
                      "--batch", "8", "--format", "json")
        assert text == program, "the wheel and the program differ"
        libraries = run("ldd", module)
        outside = [line for line in libraries.splitlines() if "libyaml" in line and folder not in line]
        assert not outside, f"not from the wheel: {outside}"
        print(f"{wheel_file.name}: {wheel_file.stat().st_size / 1e6:.1f} MB")


main()
