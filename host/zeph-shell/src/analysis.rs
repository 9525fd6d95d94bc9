//! What a command line will run: taken apart without running anything.
//!
//! The reader knows the grammar of bash, the walk collects every simple command, and the wrapper tables say which arguments
//! are commands again. It decides nothing and is no protection by itself: a program can do anything it is allowed to, whatever
//! its name. It fails closed: what it cannot be sure of is [`Unknown`](zeph_core::command::Unknown), which asks.

use zeph_core::command::CommandLine;

use self::syntax::Dialect;
use self::walk::ScriptWalk;

mod brace;
mod last;
mod literals;
mod numbers;
mod place;
mod reader;
mod syntax;
mod value;
mod variables;
mod walk;
mod wrapper;

#[cfg(test)]
mod tests;

/// Longest text that is taken apart, in bytes: as long as one argument of a program may be on Linux (`MAX_ARG_STRLEN`).
const TEXT_MAX: usize = 128 * 1024;

/// Takes a command line apart.
///
/// Shape:  the text given to `bash -c` → every simple command, in order; a wrapper before what it wraps.
/// Errors: none; what cannot be known, read or done within the limits is listed as unknown.
/// Limits: 128 KiB of text, 40 levels of nesting, 16 wrappers around one command, 1,000 commands. Linear time.
pub fn analyse(text: &str) -> CommandLine {
    let mut walk = ScriptWalk::new(text);
    if text.len() > TEXT_MAX {
        walk.unknown("the command line is too long to be taken apart", text);
        return walk.line;
    }
    if text.contains('\0') {
        walk.unknown("the command line holds a NUL character", text);
        return walk.line;
    }
    match reader::read(text, Dialect::Bash, 0) {
        Ok(script) => {
            walk.script(&script);
            if !walk.is_full() {
                walk.line.last = last::last(&script.list);
            }
        }
        Err(error) => walk.unknown(error.reason, &error.part),
    }
    walk.line
}
