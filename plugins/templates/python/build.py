"""`python3 build.py` builds dist/PLUGIN_NAME.wasm from src/ and embeds plugin.toml and the metadata of pyproject.toml.

The compiler of requirements.txt is installed into .venv the first time, or into the virtual environment that is active.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

OUTPUT = Path("dist/PLUGIN_NAME.wasm")


def compiler() -> Path:
    """The path of componentize-py, installed as requirements.txt says."""
    venv = Path(os.environ.get("VIRTUAL_ENV", ".venv"))
    scripts = venv / ("Scripts" if os.name == "nt" else "bin")
    if not (scripts / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    if not (scripts / "componentize-py").exists():
        pip = [scripts / "python", "-m", "pip", "install", "--quiet", "--requirement", "requirements.txt"]
        subprocess.run(pip, check=True)
    return scripts / "componentize-py"


def section(name: str, content: bytes) -> bytes:
    """A custom section: the byte 0, the length of the rest, the length of the name, the name, the content."""
    title = name.encode()
    body = leb128(len(title)) + title + content
    return b"\0" + leb128(len(body)) + body


def leb128(number: int) -> bytes:
    """An unsigned LEB128 number."""
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])


def main() -> None:
    os.chdir(Path(__file__).parent)
    OUTPUT.parent.mkdir(exist_ok=True)
    world = ["--wit-path", "wit", "--world", "tool-plugin", "--quiet"]
    subprocess.run([compiler(), *world, "componentize", "app", "-p", "src", "-o", OUTPUT], check=True)
    about = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    with OUTPUT.open("ab") as component:
        component.write(section("zeph:manifest", Path("plugin.toml").read_bytes()))
        for name, content in [
            ("version", about["version"]),
            ("description", about["description"]),
            ("licenses", about["license"]),
        ]:
            component.write(section(name, content.encode()))
    print(OUTPUT)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        # The failed program has printed the reason.
        sys.exit(error.returncode)
