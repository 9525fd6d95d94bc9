"""`python3 -m unittest discover tests`: tests the tools without WebAssembly."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from tools import TOOLS, ToolError  # noqa: E402


class SilentHost:
    def progress(self, *_):
        pass

    def settings(self):
        return {"only": "*.md"}

    def walk(self, root, only, skip):
        return [str(path.relative_to(root)) for glob in only for path in Path(root).glob(glob)]


def call(name: str, **arguments) -> str:
    tool = next(tool for tool in TOOLS if tool.name == name)
    return tool.run(arguments, SilentHost())


class ToolsTest(unittest.TestCase):
    def test_counts_a_text(self):
        self.assertEqual(call("TOOL_PREFIX_words", text="one two  three\n"), "3 words")

    def test_counts_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("one two")
            file.flush()
            self.assertEqual(call("TOOL_PREFIX_file", path=file.name), "2 words")

    def test_counts_a_tree(self):
        with tempfile.TemporaryDirectory() as root:
            Path(root, "a.md").write_text("one two")
            Path(root, "b.txt").write_text("three")
            self.assertEqual(call("TOOL_PREFIX_tree", path=root), "2 words")

    def test_says_what_is_wrong(self):
        with self.assertRaises(ToolError) as caught:
            call("TOOL_PREFIX_file", path="/nowhere/at/all")
        self.assertEqual(caught.exception.category, "permanent-failure")


if __name__ == "__main__":
    unittest.main()
