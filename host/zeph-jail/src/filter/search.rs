//! The search for the number of a call among all numbers, as instructions: by halves, so that each number takes some eight of them.

use seccompiler::{SeccompAction, sock_filter};

use super::{JUMP_AT_LEAST, RETURN, jump, statement};

const JUMP: u16 = 0x05;

/// What a call is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is made.
    Allowed,
    /// It is not made, and fails with this error.
    Error(i32),
    /// What stands behind the search decides.
    ByArguments,
}

/// Numbers from this one to the next range have the same answer.
type Range = (u32, Answer);

/// Makes the search. The number of the call is held when it begins; it goes on behind its end for what is judged by arguments.
///
/// `answers` are those of the numbers from 0 on; the last is that of all further ones.
pub(super) fn program(answers: Vec<Answer>) -> Vec<sock_filter> {
    let mut ranges: Vec<Range> = (0..).zip(answers).collect();
    ranges.dedup_by_key(|(_, answer)| *answer);
    let mut program = half(&ranges);
    let n_instructions = program.len();
    for (idx, one) in program.iter_mut().enumerate() {
        if one.code == JUMP {
            let left = u32::try_from(n_instructions - idx - 1);
            one.k = left.unwrap_or_else(|error| panic!("bug: a long search: {error}"));
        }
    }
    program
}

fn half(ranges: &[Range]) -> Vec<sock_filter> {
    let (lower, upper) = ranges.split_at(ranges.len() / 2);
    match (lower, upper) {
        ([], upper) => upper.iter().map(|(_, answer)| end(*answer)).collect(),
        (lower, upper) => {
            let first = upper.first().map_or(0, |(first, _)| *first);
            let mut program = half(lower);
            let n_lower = u8::try_from(program.len());
            let n_lower = n_lower
                .unwrap_or_else(|error| panic!("bug: a jump leads too far to be one: {error}"));
            program.insert(0, jump(JUMP_AT_LEAST, first, n_lower, 0));
            program.extend(half(upper));
            program
        }
    }
}

/// Where the jump of an answer leads is written once the length of the search is known.
fn end(answer: Answer) -> sock_filter {
    match answer {
        Answer::Allowed => statement(RETURN, SeccompAction::Allow.into()),
        Answer::Error(error) => {
            statement(RETURN, SeccompAction::Errno(error.unsigned_abs()).into())
        }
        Answer::ByArguments => statement(JUMP, 0),
    }
}
