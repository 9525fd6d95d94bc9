//! The syntax of git's files of configuration.
//!
//! Source: git 2.47, `config.c` (`git_parse_source`, `get_base_var`, `get_value`, `parse_value`).

use std::iter::Peekable;
use std::str::Chars;

/// One setting of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSetting {
    /// Section, subsection and key with dots between, as `git config` prints it: only a subsection in quotation marks keeps its case.
    pub name: String,
    /// Without quotation marks, escapes and comment; `None` for a key alone.
    pub value: Option<String>,
}

impl GitSetting {
    /// The last part of its name.
    pub fn key(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }
}

/// A line that git rejects.
struct BadLine;

/// The settings of a file, in its order.
///
/// Limits: git rejects a file with a line that it cannot read. Here the others count.
pub fn settings(text: &str) -> Vec<GitSetting> {
    let mut found = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut source = Source {
        letters: text.chars().peekable(),
        last: '\n',
    };
    let mut section = String::new();
    while let Some(letter) = source.next() {
        let read = match letter {
            '\n' => Ok(()),
            '#' | ';' => {
                source.skip_line();
                Ok(())
            }
            letter if is_space(letter) => Ok(()),
            '[' => source.section().map(|name| section = name),
            letter if letter.is_ascii_alphabetic() => {
                let name = format!("{section}{}", letter.to_ascii_lowercase());
                source.setting(name).map(|setting| found.push(setting))
            }
            _ => Err(BadLine),
        };
        if read.is_err() {
            source.skip_line();
        }
    }
    found
}

/// The letters of a file.
struct Source<'a> {
    letters: Peekable<Chars<'a>>,
    last: char,
}

impl Source<'_> {
    /// The next letter; both ends of lines are one.
    fn next(&mut self) -> Option<char> {
        let letter = self.letters.next();
        let letter = match letter {
            Some('\r') => self.letters.next_if_eq(&'\n').or(letter),
            letter => letter,
        };
        self.last = letter.unwrap_or('\n');
        letter
    }

    /// The next letter of a line; its end at the end of the file.
    fn next_of_line(&mut self) -> char {
        self.next().unwrap_or('\n')
    }

    fn skip_line(&mut self) {
        while self.last != '\n' {
            self.next();
        }
    }

    /// The rest of `[section]`, `[section "subsection"]` or `[section.subsection]`, with a dot behind.
    fn section(&mut self) -> Result<String, BadLine> {
        let mut name = String::new();
        loop {
            match self.next_of_line() {
                ']' => break,
                letter if is_space(letter) => {
                    self.subsection(&mut name)?;
                    break;
                }
                letter if is_of_key(letter) || letter == '.' => {
                    name.push(letter.to_ascii_lowercase());
                }
                _ => return Err(BadLine),
            }
        }
        name.push('.');
        Ok(name)
    }

    fn subsection(&mut self, name: &mut String) -> Result<(), BadLine> {
        while self.last != '\n' && is_space(self.last) {
            self.next_of_line();
        }
        if self.last != '"' {
            return Err(BadLine);
        }
        name.push('.');
        loop {
            let letter = match self.next_of_line() {
                '"' => break,
                '\\' => self.next_of_line(),
                letter => letter,
            };
            if self.last == '\n' {
                return Err(BadLine);
            }
            name.push(letter);
        }
        match self.next_of_line() {
            ']' => Ok(()),
            _ => Err(BadLine),
        }
    }

    /// The rest of a key and its value.
    fn setting(&mut self, mut name: String) -> Result<GitSetting, BadLine> {
        while is_of_key(self.next_of_line()) {
            name.push(self.last.to_ascii_lowercase());
        }
        while matches!(self.last, ' ' | '\t') {
            self.next_of_line();
        }
        let value = match self.last {
            '\n' => None,
            '=' => Some(self.value()?),
            _ => return Err(BadLine),
        };
        Ok(GitSetting { name, value })
    }

    fn value(&mut self) -> Result<String, BadLine> {
        let mut value = String::new();
        let mut is_quoted = false;
        // What is kept when nothing but blanks follows.
        let mut trimmed: Option<usize> = None;
        loop {
            match self.next_of_line() {
                '\n' if is_quoted => return Err(BadLine),
                '\n' => break,
                '#' | ';' if !is_quoted => {
                    self.skip_line();
                    break;
                }
                letter if is_space(letter) && !is_quoted => {
                    trimmed = trimmed.or((!value.is_empty()).then_some(value.len()));
                    if !value.is_empty() {
                        value.push(letter);
                    }
                    continue;
                }
                '\\' => value.extend(self.escaped()?),
                '"' => is_quoted = !is_quoted,
                letter => value.push(letter),
            }
            trimmed = None;
        }
        value.truncate(trimmed.unwrap_or(value.len()));
        Ok(value)
    }

    /// What a backslash and the next letter stand for; nothing at the end of a line, which goes on then.
    fn escaped(&mut self) -> Result<Option<char>, BadLine> {
        match self.next_of_line() {
            '\n' => Ok(None),
            't' => Ok(Some('\t')),
            'b' => Ok(Some('\u{8}')),
            'n' => Ok(Some('\n')),
            letter @ ('\\' | '"') => Ok(Some(letter)),
            _ => Err(BadLine),
        }
    }
}

/// What git takes for a blank.
fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r')
}

fn is_of_key(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-'
}
