"""A wheel with the program in it: pip puts it where commands are. wheel.py PROGRAM VERSION MACHINE FOLDER"""

import base64
import hashlib
import pathlib
import sys
import zipfile

program, version, machine, folder = sys.argv[1:]
# The program is static, so it runs with any C library; the tags say so to pip.
tags = f"manylinux_2_17_{machine}.manylinux2014_{machine}.musllinux_1_1_{machine}"
name, info = f"stepladder-{version}", f"stepladder-{version}.dist-info"
readme = pathlib.Path(__file__).parent / "README-packages.md"
metadata = f"""Metadata-Version: 2.1
Name: stepladder
Version: {version}
Summary: How many clients a real-time server holds, what gives first, and whether the answer can be trusted
License: MIT OR Apache-2.0
Keywords: load-testing,websocket,game-server,benchmark
Requires-Python: >=3.7
Description-Content-Type: text/markdown

{readme.read_text()}"""
wheel = f"Wheel-Version: 1.0\nGenerator: stepladder\nRoot-Is-Purelib: false\n"
wheel += "".join(f"Tag: py3-none-{tag}\n" for tag in tags.split("."))
files = {
    f"{name}.data/scripts/stepladder": (pathlib.Path(program).read_bytes(), 0o755),
    f"{info}/METADATA": (metadata.encode(), 0o644),
    f"{info}/WHEEL": (wheel.encode(), 0o644),
}


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


record = "".join(f"{path},sha256={digest(content)},{len(content)}\n" for path, (content, _) in files.items())
files[f"{info}/RECORD"] = ((record + f"{info}/RECORD,,\n").encode(), 0o644)
with zipfile.ZipFile(pathlib.Path(folder) / f"{name}-py3-none-{tags}.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for path, (content, mode) in files.items():
        entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, content)
