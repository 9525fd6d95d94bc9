//! What is tried with a single call or load of one guest, and how it must end: the table of most checks.

use zeph_core::category::ErrorCategory;
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::limit::CallLimits;
use zeph_core::output::RawOutput;

use crate::lab::{GuestCall, Lab, PATIENT, SHORT, reason};
use crate::{CheckResult, How, Probe};

/// One call or load, and how it must end.
pub(crate) struct Try {
    guest: &'static str,
    /// The argument `n`: which variant of the guest.
    say: &'static str,
    limits: CallLimits,
    must: Must,
}

/// How a try must end.
enum Must {
    /// With this category and these words in the reason.
    Fail(ErrorCategory, &'static str),
    /// With this text.
    Say(&'static str),
    /// Not loaded at all, for a reason with these words.
    NotLoad(&'static str),
}

impl Try {
    /// Runs it.
    pub(crate) async fn run(&self, lab: &Lab) -> CheckResult {
        let Self {
            guest, say, limits, ..
        } = *self;
        let name = format!("`{guest}` {say}");
        if let Must::NotLoad(words) = self.must {
            return match lab.load(guest, limits).await {
                Ok(_) => CheckResult::broken(format!("{name} was loaded")),
                Err(error) => expect_words(&name, &reason(&error), words),
            };
        }
        match lab.call(GuestCall::new(guest, say, limits)).await {
            None => CheckResult::broken(format!("{name} did not end")),
            Some(result) => self.judge(&name, &result),
        }
    }

    /// The result of a check, by the end of a call.
    fn judge(&self, name: &str, result: &Result<RawOutput, ToolFailure>) -> CheckResult {
        match (&self.must, result) {
            (Must::Say(text), Ok(output)) if output.to_text() == *text => CheckResult::Holds,
            (Must::Fail(category, words), Err(failure)) if failure.category == *category => {
                expect_words(name, &failure.message, words)
            }
            (_, Ok(output)) => CheckResult::broken(format!(
                "{name} succeeded with `{}`",
                one_line(&output.to_text(), 60)
            )),
            (_, Err(failure)) => CheckResult::broken(format!(
                "{name} ended as {}: {}",
                failure.category.label(),
                one_line(&failure.message, 200)
            )),
        }
    }
}

fn expect_words(name: &str, reason: &str, words: &str) -> CheckResult {
    match reason.contains(words) {
        true => CheckResult::Holds,
        false => CheckResult::broken(format!("{name} ended with `{}`", one_line(reason, 200))),
    }
}

/// Ends by time, whichever of the two limits comes first.
const fn in_time(guest: &'static str, say: &'static str) -> Try {
    Try {
        guest,
        say,
        limits: SHORT,
        must: Must::Fail(ErrorCategory::Timeout, "limits."),
    }
}

/// Ends for good, with these words.
const fn fails(guest: &'static str, say: &'static str, words: &'static str) -> Try {
    Try {
        guest,
        say,
        limits: PATIENT,
        must: Must::Fail(ErrorCategory::PermanentFailure, words),
    }
}

const fn says(guest: &'static str, say: &'static str, text: &'static str) -> Try {
    Try {
        guest,
        say,
        limits: PATIENT,
        must: Must::Say(text),
    }
}

/// Is not loaded, with these words.
const fn not_loaded(guest: &'static str, limits: CallLimits, words: &'static str) -> Try {
    Try {
        guest,
        say: "",
        limits,
        must: Must::NotLoad(words),
    }
}

const BROKE: &str = "broke its contract";
const CRASHED: &str = "the plugin crashed";

/// The checks of the engine.
pub(crate) const PROBES: &[Probe] = &[
    Probe {
        name: "time of a call",
        tried: "loops, tail calls, bulk copies of memory and tables, jumps, arguments that are never taken",
        how: How::Tries(&[
            in_time("spin", "a"),
            in_time("spin", "b"),
            in_time("spin", "c"),
            in_time("spin", "d"),
            in_time("spin", "e"),
            in_time("spin", "f"),
            in_time("spin_realloc", "a"),
        ]),
    },
    Probe {
        name: "time around a call",
        tried: "loops in start code, while listing tools, in a destructor, after the result",
        how: How::Tries(&[
            not_loaded("spin_start", SHORT, "limits."),
            not_loaded("spin_list", SHORT, "limits."),
            not_loaded("spin_post_list", SHORT, "limits."),
            in_time("spin_drop", "a"),
            in_time("spin_post", "a"),
        ]),
    },
    Probe {
        name: "time in the host",
        tried: "a sleep and a poll without end, a million naps, a closed input read for ever",
        how: How::Tries(&[
            in_time("wait", "a"),
            in_time("wait", "b"),
            in_time("wait", "c"),
            in_time("wait", "d"),
        ]),
    },
    Probe {
        name: "host calls",
        tried: "floods of the clocks, of random bytes, of output, of the log, of progress",
        how: How::Tries(&[
            fails("flood", "a", "limits.host_calls"),
            fails("flood", "b", "limits.host_calls"),
            fails("flood", "c", "limits.host_calls"),
            fails("flood", "d", "limits.host_calls"),
            fails("flood", "f", "limits.host_calls"),
            fails("flood", "g", "limits.host_calls"),
        ]),
    },
    Probe {
        name: "memory of a guest",
        tried: "growth page by page and at once, 4 GiB and 256 TiB from the start, a hundred memories",
        how: How::Tries(&[
            fails("memory", "a", "limits.memory_bytes"),
            fails("memory", "b", "limits.memory_bytes"),
            fails("memory", "c", "limits.memory_bytes"),
            not_loaded("memory_declared", PATIENT, "limits.memory_bytes"),
            not_loaded("memory_64", PATIENT, "exceeds the limit"),
            not_loaded("memory_many", PATIENT, "exceeds the"),
        ]),
    },
    Probe {
        name: "tables of a guest",
        tried: "growth step by step and at once, ten million elements from the start, sixty tables",
        how: How::Tries(&[
            fails("table", "a", "limits.table_elements"),
            fails("table", "b", "limits.table_elements"),
            not_loaded("table_declared", PATIENT, "exceeds the limit"),
            not_loaded("table_many", PATIENT, "exceeds the"),
        ]),
    },
    Probe {
        name: "threads",
        tried: "a memory that threads could share",
        how: How::Tries(&[not_loaded("memory_shared", PATIENT, "threads")]),
    },
    Probe {
        name: "stack",
        tried: "recursion without end: direct, through a table, with large frames",
        how: How::Tries(&[
            fails("recurse", "a", "recursed too deeply"),
            fails("recurse", "b", "recursed too deeply"),
            fails("recurse", "c", "recursed too deeply"),
        ]),
    },
    Probe {
        name: "traps",
        tried: "every kind of trap, writes of gigabytes outside memory, the end of the guest's own process",
        how: How::Tries(&[
            fails("trap", "a", CRASHED),
            fails("trap", "b", CRASHED),
            fails("trap", "c", CRASHED),
            fails("trap", "d", CRASHED),
            fails("trap", "e", CRASHED),
            fails("trap", "f", CRASHED),
            fails("trap", "g", CRASHED),
            fails("trap", "h", CRASHED),
            fails("trap", "i", CRASHED),
            fails("trap", "j", CRASHED),
            fails("trap", "k", CRASHED),
            fails("surroundings", "b", "ended itself"),
            fails("surroundings", "c", "ended itself"),
        ]),
    },
    Probe {
        name: "results",
        tried: "texts that are none, of 1 GB, outside memory; values of no kind; data nested 100,000 deep",
        how: How::Tries(&[
            fails("result", "a", BROKE),
            fails("result", "b", BROKE),
            fails("result", "c", BROKE),
            fails("result", "d", BROKE),
            fails("result", "e", BROKE),
            fails("result", "f", BROKE),
            fails("result", "g", BROKE),
            fails("result", "h", BROKE),
            fails("result", "i", BROKE),
            fails("result", "j", BROKE),
            fails("result", "k", BROKE),
            fails("result", "l", "limits.output_bytes"),
            fails("result", "n", "not valid JSON"),
            fails("result", "o", "not valid JSON"),
            fails("realloc", "a", BROKE),
            fails("realloc_crooked", "a", BROKE),
            says("realloc_same", "a", "done"),
        ]),
    },
    Probe {
        name: "lists of tools",
        tried: "100,000 tools, a list without end, one tool twice, names that drive a terminal, 16 MiB of words",
        how: How::Tries(&[
            not_loaded("list_many", PATIENT, "100000 tools"),
            not_loaded("list_endless", PATIENT, BROKE),
            not_loaded("list_twice", PATIENT, "twice"),
            not_loaded("list_name", PATIENT, "not a valid tool name"),
            not_loaded("list_latin", PATIENT, BROKE),
            not_loaded("list_long", PATIENT, "the limit is"),
            not_loaded("list_error", PATIENT, "cannot list its tools"),
            not_loaded("list_kind", PATIENT, BROKE),
        ]),
    },
    Probe {
        name: "schemas",
        tried: "schemas that lie elsewhere, nest 50,000 deep, or multiply to billions of checks",
        how: How::Tries(&[
            not_loaded("schema_remote", PATIENT, "only places in itself"),
            not_loaded("schema_nested", PATIENT, "not valid JSON"),
            not_loaded("schema_doubling", PATIENT, "its schema"),
        ]),
    },
    Probe {
        name: "handles",
        tried: "handles of the host and of the guest's own without end",
        how: How::Tries(&[
            fails("handles", "a", "limits.handles"),
            fails("handles", "b", "more than 100000"),
        ]),
    },
    Probe {
        name: "memory of the host",
        tried: "gigabytes of random bytes and of zeroes at once, hoards in requests that are never sent",
        how: How::Tries(&[
            fails("flood", "k", BROKE),
            fails("flood", "l", BROKE),
            fails("flood", "m", BROKE),
            says("network", "c", "done"),
            says("network", "d", "done"),
        ]),
    },
    Probe {
        name: "network",
        tried: "TCP and UDP sockets, a look-up of a name, a request over HTTP",
        how: How::Tries(&[
            // Error codes: access denied three times; request denied.
            says("network", "a", "010101"),
            says("network", "b12345", "15"),
        ]),
    },
    Probe {
        name: "programs",
        tried: "a shell that was not granted, by its name and by its path, and what no command line can be",
        how: How::Tries(&[
            // Kinds of error: denied, invalid.
            says("process", "a", "0"),
            says("process", "b", "2"),
            says("process", "c", "2"),
            fails("process", "d", BROKE),
            says("process", "e", "0"),
        ]),
    },
    Probe {
        name: "surroundings",
        tried: "variables, arguments, standard input",
        how: How::Tries(&[
            says("surroundings", "a", "00"),
            says("surroundings", "d", "1"),
        ]),
    },
    Probe {
        name: "log and output",
        tried: "20,000 lines to the log and to standard output: cut, and the call goes on",
        how: How::Tries(&[says("flood", "i", "done"), says("flood", "j", "done")]),
    },
];

#[cfg(test)]
mod tests;
