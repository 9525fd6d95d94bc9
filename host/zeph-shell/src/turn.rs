//! What the commands of one turn share: directory, exported variables, history.
//!
//! At its end, a shell reports its directory and what it exports (`rc` makes it, `record` reads it); the next one starts there. All of
//! it comes from inside the jail and is not trusted: it is bounded, it goes back into the jail only, as text for the
//! shell there, and never into the environment of a process outside. It is forgotten at the end of the turn.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Component, Path, PathBuf};

use zeph_core::call::TurnContext;

use crate::held_object::HeldObject;
use crate::leading;

pub(crate) mod rc;
pub(crate) mod record;

pub(crate) use record::TurnRecord;

/// Maximum number of variables of a turn. A shell with a toolchain has some sixty.
const VARIABLES_MAX: usize = 500;

/// Most bytes of all their names and values.
const VARIABLES_BYTES_MAX: usize = 128 * 1024;

/// Most commands in the history, and most bytes of all of them.
const HISTORY_MAX: usize = 200;
const HISTORY_BYTES_MAX: usize = 64 * 1024;

/// One turn.
#[derive(Debug, Clone)]
pub struct Turn {
    /// Its identifiers.
    pub context: TurnContext,
    /// Where the next command starts.
    pub directory: PathBuf,
    /// What commands exported, and what they removed (`None`).
    pub(crate) variables: BTreeMap<String, Option<Vec<u8>>>,
    /// The commands so far, oldest first.
    pub(crate) history: VecDeque<String>,
}

/// How a command changed its turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TurnChange {
    /// From where to where, when the next command starts elsewhere.
    pub(crate) directory: Option<(PathBuf, PathBuf)>,
    /// Notes for the caller.
    pub(crate) notes: Vec<String>,
}

/// Directories whose content is made anew for every command.
const PRIVATE: [&str; 5] = ["/tmp", "/var/tmp", "/dev", "/proc", "/run"];

/// Those that commands fill: the next one would look in vain for what this one left there.
const FILLED: [&str; 2] = ["/tmp", "/var/tmp"];

impl Turn {
    /// A turn that starts in `directory`.
    pub fn new(context: TurnContext, directory: PathBuf) -> Self {
        Self {
            context,
            directory,
            variables: BTreeMap::new(),
            history: VecDeque::new(),
        }
    }

    /// Remembers a command.
    pub(crate) fn remember(&mut self, command: &str) {
        if command.len() <= HISTORY_BYTES_MAX / 4 {
            self.history.push_back(command.to_owned());
        }
        while self.history.len() > HISTORY_MAX || self.history_bytes() > HISTORY_BYTES_MAX {
            self.history.pop_front();
        }
    }

    /// Takes over what a shell that was started with the state `before` said at its end. `roots` are the directories that
    /// outlive a command.
    ///
    /// Only what the command itself changed is taken: another command of the turn may have ended meanwhile.
    pub(crate) fn take_over(
        &mut self,
        before: &Path,
        record: &TurnRecord,
        roots: &[PathBuf],
    ) -> TurnChange {
        let mut change = TurnChange::default();
        let Some(end) = &record.end else {
            return change;
        };
        let moved = end.directory != record.start_directory;
        if moved && end.directory != self.directory {
            match stays(&end.directory, record.home(), roots) {
                Ok(()) => {
                    let old = std::mem::replace(&mut self.directory, end.directory.clone());
                    change.directory = Some((old, end.directory.clone()));
                }
                Err(why) => change.notes.push(format!(
                    "the next command starts in `{}`, not in `{}`: {why}",
                    self.directory.display(),
                    end.directory.display()
                )),
            }
        }
        if record.start_directory != before {
            change.notes.push(format!(
                "the directory `{}` is not there any more: the command started in `{}`",
                before.display(),
                record.start_directory.display()
            ));
            if change.directory.is_none() && self.directory == before {
                self.directory = record.start_directory.clone();
            }
        }
        self.take_variables(record.changed(), &mut change.notes);
        change
    }

    fn take_variables(
        &mut self,
        changed: BTreeMap<String, Option<Vec<u8>>>,
        notes: &mut Vec<String>,
    ) {
        let mut left_out = Vec::new();
        for (name, value) in changed {
            if is_of_the_shell(&name) {
                continue;
            }
            let text = value.as_deref().map(String::from_utf8_lossy);
            let leads = match text.as_deref() {
                Some(text) if name == "PATH" => !leading::is_absolute(text),
                Some(text) => leading::leads(&name, text) || leading::holds_subscript(text),
                None => name == "PATH",
            };
            if leads {
                left_out.push(name);
                continue;
            }
            let old = self.variables.insert(name.clone(), value);
            if self.variables.len() > VARIABLES_MAX || self.variables_bytes() > VARIABLES_BYTES_MAX
            {
                match old {
                    Some(old) => self.variables.insert(name.clone(), old),
                    None => self.variables.remove(&name),
                };
                left_out.push(name);
            }
        }
        if !left_out.is_empty() {
            let n_more = left_out.len().saturating_sub(5);
            left_out.truncate(5);
            let more = if n_more > 0 {
                format!(" and {n_more} more")
            } else {
                String::new()
            };
            notes.push(format!(
                "variables that do not carry on to the next command: {}{more}; set them in the command that needs them",
                left_out.join(", ")
            ));
        }
    }

    fn variables_bytes(&self) -> usize {
        let bytes = |(name, value): (&String, &Option<Vec<u8>>)| {
            name.len() + value.as_ref().map_or(0, Vec::len)
        };
        self.variables.iter().map(bytes).sum()
    }

    fn history_bytes(&self) -> usize {
        self.history.iter().map(String::len).sum()
    }
}

/// Whether a command may change what carries on to the next, by its words: where it does not, nobody misses that.
pub(crate) fn may_change_state(command: &str) -> bool {
    const WORDS: [&str; 12] = [
        ".", "cd", "declare", "eval", "export", "popd", "pushd", "read", "set", "source",
        "typeset", "unset",
    ];
    let is_border = |c: char| c.is_whitespace() || ";&|(){}'\"`".contains(c);
    command.split(is_border).any(|word| WORDS.contains(&word))
}

/// Whether a directory will be there for the next command, with what is in it, as far as can be told without looking at anything outside
/// of the `roots`: what a command claims must not become a way to ask what exists. So `..` and symbolic links are not followed; the next
/// shell tries them inside the jail. The `home` of commands is a private one; what lies in it may be a toolchain, which stays.
fn stays(directory: &Path, home: Option<&Path>, roots: &[PathBuf]) -> Result<(), &'static str> {
    if !directory.is_absolute() {
        return Err("it is not an absolute path");
    }
    if directory
        .components()
        .any(|part| part == Component::ParentDir)
    {
        return Ok(());
    }
    if roots.iter().any(|root| directory.starts_with(root)) {
        return match HeldObject::open(directory) {
            Ok(held) if held.is_directory() => Ok(()),
            Err(error) if !is_missing(&error) => Ok(()),
            _ => Err("it does not exist any more"),
        };
    }
    let is_private = |private: &&str| {
        directory.starts_with(private)
            && (directory != Path::new(private) || FILLED.contains(private))
    };
    match PRIVATE.iter().any(is_private) || Some(directory) == home {
        true => Err("what is there ends with the command"),
        false => Ok(()),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Names that a shell sets itself, or that would affect the start of the next one.
fn is_of_the_shell(name: &str) -> bool {
    const NAMES: [&str; 16] = [
        "_",
        "SHLVL",
        "PWD",
        "UID",
        "EUID",
        "PPID",
        "IFS",
        "SHELLOPTS",
        "BASHOPTS",
        "BASH_ENV",
        "ENV",
        "POSIXLY_CORRECT",
        "HISTFILE",
        "HISTSIZE",
        "HISTFILESIZE",
        "HISTCONTROL",
    ];
    NAMES.contains(&name) || name.starts_with("BASH_") || name.starts_with("ZEPH_")
}

#[cfg(test)]
mod tests;
