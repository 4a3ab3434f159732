"""Two packages for npm: `stepladder`, which finds and starts the program, and that of one platform, which holds it.

npm.py PROGRAM VERSION MACHINE FOLDER
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

program, version, machine, folder = sys.argv[1:]
HERE = pathlib.Path(__file__).parent
CPUS = {"x86_64": "x64", "aarch64": "arm64"}
PLATFORMS = [f"@stepladder/linux-{cpu}" for cpu in CPUS.values()]
common = {
    "version": version,
    "description": "How many clients a real-time server holds, what gives first, and whether the answer can be trusted",
    "license": "MIT OR Apache-2.0",
}


def packed(package, files):
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        (place / "package.json").write_text(json.dumps({**common, **package}, indent=2) + "\n")
        for source, target in files:
            (place / target).parent.mkdir(exist_ok=True)
            shutil.copy2(source, place / target)
        command = ["npm", "pack", "--silent", "--pack-destination", str(pathlib.Path(folder).resolve())]
        subprocess.run(command, cwd=place, check=True)


readme = (HERE / "README-packages.md", "README.md")
# Each platform's package is installed where it fits, and left out elsewhere.
packed(
    {
        "name": "stepladder",
        "bin": {"stepladder": "bin/stepladder.js"},
        "engines": {"node": ">=18"},
        "optionalDependencies": {platform: version for platform in PLATFORMS},
    },
    [(HERE / "npm/stepladder.js", "bin/stepladder.js"), readme],
)
cpu = CPUS[machine]
packed(
    {"name": f"@stepladder/linux-{cpu}", "os": ["linux"], "cpu": [cpu], "preferUnplugged": True},
    [(program, "bin/stepladder"), readme],
)
