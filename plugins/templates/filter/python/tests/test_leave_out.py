"""`python3 -m unittest discover tests`: tests the strategies without WebAssembly."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from leave_out import leave_out  # noqa: E402


class LeaveOutTest(unittest.TestCase):
    def test_leaves_out_what_begins_so(self):
        selection = leave_out({"begins": ["CC "]})("CC a.o\nwarning: x\nwarning: y\nCC b.o\ndone\n")
        self.assertEqual(selection.kept, [(1, 2), (4, 1)])
        self.assertEqual(selection.notes, ["2 lines omitted"])
        self.assertEqual(selection.confidence, "full")

    def test_does_not_know_an_output_without_such_lines(self):
        self.assertEqual(leave_out({"begins": ["CC "]})("done\n").confidence, "fallback")

    def test_says_what_is_wrong_with_its_options(self):
        with self.assertRaisesRegex(ValueError, "`begins` is a list of words"):
            leave_out({})
        with self.assertRaisesRegex(ValueError, "there is no option `colour`"):
            leave_out({"begins": ["a"], "colour": 1})


if __name__ == "__main__":
    unittest.main()
