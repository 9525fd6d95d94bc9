//! The text a command's shell reads before the command: what earlier commands of the turn left, and what it has to tell at
//! its end.
//!
//! It is read through `BASH_ENV`, inside the jail. The shell tells its state on a descriptor, twice: before the command
//! and when it exits, however it exits. A command that replaces the shell (`exec`), is killed, or sets an EXIT trap of its own
//! tells nothing at its end; then its turn goes on as it was, and a note says so where the command may have changed that.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::Turn;

/// What a state consists of: see `record` for its shape. Functions of these names must not stand in the way, nor may
/// a closed descriptor be complained of.
const STATE: &str =
    r#"builtin pwd; builtin printf "\0"; builtin declare -px; builtin printf "\0";"#;

/// Where a shell finds the processes that it leaves running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leftovers {
    /// Whatever there is in its process namespace.
    Namespace,
    /// Its own jobs. Those of a subshell, or that left their session, are not told.
    Jobs,
}

impl Leftovers {
    /// Prints the command line of each, its words with a space behind, and a `\x01` at its end, and asks all of them to end. Processes
    /// that are dead and not yet waited for have none, and no program either. One that is just becoming another program has none for a
    /// moment. A subshell has that of its shell, which is the whole text of the command: it is told as what it is. One for which the
    /// signal to end waits is asked, but not told: the command has ended it, and it has not had the time to notice.
    fn script(self) -> String {
        let listed = match self {
            Self::Namespace => "/proc/[0-9]*",
            Self::Jobs => "$(builtin jobs -rp)",
        };
        format!(
            r#"builtin set +efu; builtin unset -v IFS; builtin mapfile -d "" -t zeph_own < "/proc/$$/cmdline"; zeph_left=();
for zeph_process in {listed}; do zeph_process=${{zeph_process##*/}};
if [[ $zeph_process != 1 && $zeph_process != "$$" ]]; then zeph_words=(); zeph_facts=();
builtin mapfile -d "" -t zeph_words < "/proc/$zeph_process/cmdline";
if [[ ${{#zeph_own[@]}} != 0 && "${{zeph_words[*]}}" == "${{zeph_own[*]}}" ]]; then zeph_words=("a subshell"); fi;
if [[ ${{#zeph_words[@]}} == 0 && -e /proc/$zeph_process/exe ]]; then zeph_words=("a program that is just starting"); fi;
if [[ ${{#zeph_words[@]}} != 0 ]]; then zeph_left+=("$zeph_process");
builtin mapfile -t zeph_facts < "/proc/$zeph_process/status";
if [[ ! "${{zeph_facts[*]}}" =~ {ENDED} ]]; then
builtin printf "%s " "${{zeph_words[@]}}"; builtin printf "\1"; fi; fi; fi; done;
builtin printf "\0";
{ASK_TO_END}"#
        )
    }
}

/// Matches the status of a process for which SIGTERM or SIGKILL waits: the sets of waiting signals are numbers in hexadecimal digits, in which
/// SIGKILL is the lowest bit of the third from the end, and SIGTERM the third bit of the fourth. Alarms and the like wait for any process now
/// and then.
const ENDED: &str = "(SigPnd|ShdPnd):[[:space:]]*[0-9a-f]*([4-7c-f][0-9a-f]|[0-9a-f][13579bdf])[0-9a-f][0-9a-f]([[:space:]]|$)";

/// Asks the processes of `zeph_left` to end, since what is killed leaves its locks and half of its files, and waits until they have, for a
/// second at most. Where none is left, it starts nothing. The pipe has no other end, so that reading it only passes the time. The shell
/// would print the end of its own jobs.
const ASK_TO_END: &str = r#"if [[ ${#zeph_left[@]} != 0 ]]; then builtin disown -a;
builtin kill -TERM "${zeph_left[@]}"; builtin kill -CONT "${zeph_left[@]}"; zeph_turns=50;
while [[ ${#zeph_left[@]} != 0 && $zeph_turns != 0 ]]; do builtin read -rt 0.02; zeph_turns=$((zeph_turns - 1)); zeph_alive=();
for zeph_process in "${zeph_left[@]}"; do
if [[ -e /proc/$zeph_process/exe ]]; then zeph_alive+=("$zeph_process"); fi; done;
zeph_left=("${zeph_alive[@]}"); done <> <(:); fi;"#;

/// The text for a shell that is started in `root` and tells its state on descriptor `fd`, at its end with the `leftovers`. `exports`
/// are given to the command on top.
pub(crate) fn text(
    turn: &Turn,
    root: &Path,
    exports: &BTreeMap<String, String>,
    (fd, leftovers): (i32, Leftovers),
) -> Vec<u8> {
    let mut text = b"unset BASH_ENV\n".to_vec();
    if turn.directory != root {
        text.extend(b"builtin cd -- ");
        quote(turn.directory.as_os_str().as_bytes(), &mut text);
        text.extend(b" 2>/dev/null\n");
    }
    for (name, value) in &turn.variables {
        match value {
            Some(value) => {
                text.extend(b"export ");
                text.extend(name.as_bytes());
                text.push(b'=');
                quote(value, &mut text);
            }
            None => {
                text.extend(b"unset -v ");
                text.extend(name.as_bytes());
            }
        }
        text.push(b'\n');
    }
    for command in &turn.history {
        text.extend(b"history -s -- ");
        quote(command.as_bytes(), &mut text);
        text.push(b'\n');
    }
    for (name, value) in exports {
        text.extend(format!("export {name}=").as_bytes());
        quote(value.as_bytes(), &mut text);
        text.push(b'\n');
    }
    // The status comes first: every command changes it. A child that is ended before it has become a program or a subshell has the trap
    // still, and has nothing to tell.
    let left = leftovers.script();
    let at_end = format!(
        r#"{{ zeph_status=$?; if [[ ${{BASHPID-$$}} == "$$" ]]; then builtin printf "%s\0" "$zeph_status"; {STATE} {left} fi; }} 2>/dev/null >&{fd}"#
    );
    let at_start = format!("{{ {STATE} }} 2>/dev/null >&{fd}");
    text.extend(format!("{at_start}\ntrap '{at_end}' EXIT\n").as_bytes());
    text
}

/// Appends `bytes` so that a shell reads exactly them. They hold no NUL, having come from a shell or a JSON text without one.
pub(crate) fn quote(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for byte in bytes {
        match byte {
            b'\'' => out.extend(br"'\''"),
            0 => {}
            byte => out.push(*byte),
        }
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests;
