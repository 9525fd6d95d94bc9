//! Notices that a model goes in circles. Pure.
//!
//! Two signs count. Three rounds in a row whose outputs are the same, whatever was called. And a call that is made a third time with the
//! same arguments and the same output while nothing new was changed in between, however many other calls stand between them: who edits
//! a file and runs the same failing test again is not in a loop, who reads the same two files in turn is. What one answer asks for twice
//! counts once.
//!
//! An output without a word is the same only where the call is: what succeeds and has nothing to say, such as `touch`, `mkdir` and
//! `git add`, prints that whatever it did. Here the product differs from its specification, which compares outputs alone. What fails says
//! something.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash as _, Hasher as _};

/// How often the same thing may happen: the third time is a loop.
const REPEATS_MAX: u32 = 3;

/// Different calls of one turn that are remembered; beyond it the counts begin anew.
const CALLS_MAX: usize = 10_000;

/// One finished call as the detector sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeenCall<'a> {
    /// The tool.
    pub(crate) tool: &'a str,
    /// Its arguments as JSON.
    pub(crate) arguments: &'a str,
    /// What the model is shown of the result, without what differs each time.
    pub(crate) output: &'a str,
    /// Whether the tool only reads.
    pub(crate) is_read_only: bool,
}

impl SeenCall<'_> {
    /// A hash of the call and its output: equal for a call that is repeated with the same output.
    fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.tool, self.arguments, self.output).hash(&mut hasher);
        hasher.finish()
    }
}

/// What was called and answered since the turn began.
#[derive(Debug, Default)]
pub(crate) struct Repetition {
    /// What the last round came to, and how many rounds in a row came to that.
    last_round: Option<(u64, u32)>,
    /// How often a call had the same output since something new was changed.
    calls: HashMap<u64, u32>,
}

impl Repetition {
    /// Takes the calls of one round, in order; whether they show a loop.
    pub(crate) fn is_loop<'a>(&mut self, round: impl IntoIterator<Item = SeenCall<'a>>) -> bool {
        let mut outputs = DefaultHasher::new();
        let (mut n_calls, mut repeats) = (0_usize, 0);
        let mut counted = HashSet::new();
        for call in round {
            n_calls += 1;
            call.output.hash(&mut outputs);
            if call.output.trim().is_empty() {
                (call.tool, call.arguments).hash(&mut outputs);
            }
            let key = call.key();
            if counted.insert(key) {
                repeats = repeats.max(self.count(key, call.is_read_only));
            }
        }
        if n_calls == 0 {
            return false;
        }
        n_calls.hash(&mut outputs);
        self.count_round(outputs.finish()) >= REPEATS_MAX || repeats >= REPEATS_MAX
    }

    fn count(&mut self, key: u64, is_read_only: bool) -> u32 {
        let is_new = !self.calls.contains_key(&key);
        if is_new && (!is_read_only || self.calls.len() >= CALLS_MAX) {
            self.forget_others(key);
        }
        let count = self.calls.entry(key).or_insert(0);
        *count = count.saturating_add(1);
        *count
    }

    /// Something new was changed: what is done again now may come to something else. What was seen stays seen.
    fn forget_others(&mut self, key: u64) {
        if self.calls.len() >= CALLS_MAX {
            self.calls.clear();
        }
        self.calls.values_mut().for_each(|count| *count = 0);
        self.calls.insert(key, 0);
    }

    fn count_round(&mut self, outputs: u64) -> u32 {
        let count = match self.last_round {
            Some((last, count)) if last == outputs => count.saturating_add(1),
            _ => 1,
        };
        self.last_round = Some((outputs, count));
        count
    }
}

#[cfg(test)]
mod tests {
    use super::{Repetition, SeenCall};

    fn call<'a>(tool: &'a str, arguments: &'a str, output: &'a str) -> SeenCall<'a> {
        SeenCall {
            tool,
            arguments,
            output,
            is_read_only: tool == "read",
        }
    }

    /// The round, counted from 1, in which a loop is seen.
    fn seen_in(rounds: &[&[SeenCall<'_>]]) -> Option<usize> {
        let mut repetition = Repetition::default();
        let found = rounds
            .iter()
            .position(|round| repetition.is_loop(round.iter().copied()));
        found.map(|idx| idx + 1)
    }

    #[test]
    fn three_rounds_with_the_same_outputs_are_a_loop() {
        let round = |arguments| [call("bash", arguments, "no such file")];
        let (a, b, c) = (round("1"), round("2"), round("3"));
        assert_eq!(seen_in(&[&a, &b, &c]), Some(3));
        let other = [call("bash", "4", "found")];
        assert_eq!(seen_in(&[&a, &b, &other, &c]), None);
    }

    #[test]
    fn the_same_calls_in_turn_are_a_loop() {
        let (a, b) = ([call("read", "a", "one")], [call("read", "b", "two")]);
        assert_eq!(seen_in(&[&a, &b, &a, &b, &a]), Some(5));
        let (a, b) = ([call("bash", "a", "one")], [call("bash", "b", "two")]);
        assert_eq!(seen_in(&[&a, &b, &a, &b, &a, &b, &a]), Some(6));
    }

    #[test]
    fn a_test_that_still_fails_after_an_edit_is_no_loop() {
        let test = [call("bash", "cargo test", "1 failed")];
        let edits = [
            [call("edit", "1", "ok")],
            [call("edit", "2", "ok")],
            [call("edit", "3", "ok")],
        ];
        let rounds: [&[SeenCall<'_>]; 7] =
            [&test, &edits[0], &test, &edits[1], &test, &edits[2], &test];
        assert_eq!(seen_in(&rounds), None);
    }

    #[test]
    fn calls_without_output_are_a_loop_only_when_they_are_the_same() {
        for blank in ["", " \n"] {
            let made = |arguments| [call("bash", arguments, blank)];
            let (a, b, c) = (made("touch a"), made("touch b"), made("touch c"));
            assert_eq!(seen_in(&[&a, &b, &c]), None);
            assert_eq!(seen_in(&[&a, &a, &a]), Some(3));
            let both = [a[0], b[0]];
            assert_eq!(seen_in(&[&both, &both, &both]), Some(3));
        }
    }

    #[test]
    fn one_answer_with_the_same_call_many_times_is_no_loop() {
        let read = call("read", "a", "one");
        let other = [call("read", "b", "two")];
        let round = [read; 4];
        assert_eq!(seen_in(&[&round, &other]), None);
        assert_eq!(seen_in(&[&round, &other, &round, &other, &round]), Some(5));
        assert_eq!(seen_in(&[&round, &round, &round]), Some(3));
    }

    #[test]
    fn a_round_without_calls_says_nothing() {
        assert_eq!(seen_in(&[&[], &[], &[], &[]]), None);
    }
}
