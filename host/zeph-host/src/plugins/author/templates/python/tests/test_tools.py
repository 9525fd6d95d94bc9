"""`python3 -m unittest discover tests`: the tools without WebAssembly."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from tools import TOOLS, ToolError  # noqa: E402


class SilentHost:
    def progress(self, *_):
        pass


def call(name: str, **arguments) -> str:
    tool = next(tool for tool in TOOLS if tool.name == name)
    return tool.run(arguments, SilentHost())


class ToolsTest(unittest.TestCase):
    def test_counts_a_text(self):
        self.assertEqual(call("count_words", text="one two  three\n"), "3 words")

    def test_counts_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("one two")
            file.flush()
            self.assertEqual(call("count_file", path=file.name), "2 words")

    def test_says_what_is_wrong(self):
        with self.assertRaises(ToolError) as caught:
            call("count_file", path="/nowhere/at/all")
        self.assertEqual(caught.exception.category, "permanent-failure")


if __name__ == "__main__":
    unittest.main()
