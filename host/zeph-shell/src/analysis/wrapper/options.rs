//! Reading options the way `getopt_long` does, up to the first word that is none.

use super::super::value::Value;

/// The options a program knows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProgramOptions {
    /// Letters that stand alone.
    pub(super) flags: &'static str,
    /// Letters that take a value: the rest of the word, or the next word.
    pub(super) valued: &'static str,
    /// Long names that take no value, or only one after `=`.
    pub(super) long_flags: &'static [&'static str],
    /// Long names that take a value.
    pub(super) long_valued: &'static [&'static str],
}

/// An option that was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Met {
    /// A letter, or a whole long name.
    pub(super) name: String,
    /// Its value, when it takes one.
    pub(super) value: Option<Value>,
    /// Where the first word behind it and its value stands.
    pub(super) next: usize,
}

/// What stands before the first word that is no option.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Read {
    pub(super) met: Vec<Met>,
    /// Where the first word that is no option stands.
    pub(super) next: usize,
}

impl Read {
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.met
            .iter()
            .any(|met| names.contains(&met.name.as_str()))
    }

    pub(super) fn value(&self, names: &[&str]) -> Option<&Value> {
        self.met
            .iter()
            .rev()
            .find(|met| names.contains(&met.name.as_str()))
            .and_then(|met| met.value.as_ref())
    }
}

impl ProgramOptions {
    /// Reads options from the front; `None` when one is not known.
    pub(super) fn read(&self, arguments: &[Value]) -> Option<Read> {
        let mut read = Read::default();
        while let Some(argument) = arguments.get(read.next) {
            let is_option = argument.text.starts_with('-') && argument.text.len() > 1;
            if !is_option {
                break;
            }
            if !argument.is_one_word {
                return None;
            }
            read.next += 1;
            if argument.text == "--" {
                break;
            }
            match argument.text.strip_prefix("--") {
                Some(long) => self.long(long, argument, arguments, &mut read)?,
                None => self.short(argument, arguments, &mut read)?,
            }
        }
        Some(read)
    }

    fn long(
        &self,
        long: &str,
        argument: &Value,
        arguments: &[Value],
        read: &mut Read,
    ) -> Option<()> {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        // A long name may be shortened; what is ambiguous is refused.
        let find = |names: &'static [&'static str]| {
            let exact = names.iter().find(|n| **n == name);
            exact
                .or_else(|| names.iter().find(|n| n.starts_with(name)))
                .copied()
        };
        let known = match (find(self.long_flags), find(self.long_valued)) {
            (Some(flag), Some(valued)) => match (flag == name, valued == name) {
                (true, _) => (flag, false),
                (_, true) => (valued, true),
                _ => return None,
            },
            (Some(flag), None) => (flag, false),
            (None, Some(valued)) => (valued, true),
            (None, None) => return None,
        };
        let value = match (value, known.1) {
            (Some(value), _) => Some(argument.part(value)),
            (None, true) => {
                read.next += 1;
                Some(one_word(arguments.get(read.next - 1)?)?)
            }
            (None, false) => None,
        };
        read.met.push(Met {
            name: known.0.to_owned(),
            value,
            next: read.next,
        });
        Some(())
    }

    fn short(&self, argument: &Value, arguments: &[Value], read: &mut Read) -> Option<()> {
        let letters = argument.text.get(1..)?;
        for (at, letter) in letters.char_indices() {
            if self.flags.contains(letter) {
                read.met.push(Met {
                    name: letter.to_string(),
                    value: None,
                    next: read.next,
                });
                continue;
            }
            if !self.valued.contains(letter) {
                return None;
            }
            let rest = letters.get(at + letter.len_utf8()..)?;
            let value = match rest.is_empty() {
                false => argument.part(rest),
                true => {
                    read.next += 1;
                    one_word(arguments.get(read.next - 1)?)?
                }
            };
            read.met.push(Met {
                name: letter.to_string(),
                value: Some(value),
                next: read.next,
            });
            return Some(());
        }
        Some(())
    }
}

fn one_word(value: &Value) -> Option<Value> {
    value.is_one_word.then(|| value.clone())
}
