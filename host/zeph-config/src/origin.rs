//! Where a value was said, and what is wrong with it.
//!
//! Every text from a file or a variable passes `one_line` before it is shown: a project file is written by strangers
//! and must not reach the terminal with line breaks or escape sequences.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use zeph_core::failure::one_line;

/// Where a value was said.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "layer", rename_all = "snake_case")]
pub enum ValueOrigin {
    /// `config/default.toml` inside the program.
    BuiltIn {
        /// The line, counted from 1.
        line: usize,
    },
    /// The user's file, or the file named by `--config` or `ZEPH_HOST_CONFIG`.
    User {
        /// The file.
        #[serde(serialize_with = "lossy")]
        path: PathBuf,
        /// The line, counted from 1; 0 for the file as a whole.
        line: usize,
    },
    /// `.zeph/config.toml`.
    Project {
        /// The file.
        #[serde(serialize_with = "lossy")]
        path: PathBuf,
        /// The line, counted from 1; 0 for the file as a whole.
        line: usize,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        variable: String,
    },
    /// The command line.
    Flag {
        /// The flag as it was typed.
        flag: String,
    },
}

/// One key with its effective value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// The dotted key, such as `tools.overflow.threshold`.
    pub key: String,
    /// The effective value as it was written.
    pub value: toml::Value,
    /// Where it was said; more than one when a later layer added to a list.
    pub origins: Vec<ValueOrigin>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where.
    pub origin: ValueOrigin,
    /// The column, counted from 1 in characters; 0 when the line says enough.
    pub column: usize,
    /// What, on one line, the key included.
    pub message: String,
}

/// Everything that is wrong, in the order of the layers and of the lines in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigErrors {
    /// Never empty.
    pub problems: Vec<Problem>,
}

/// Characters of a path or a flag that a message shows. Linux paths end at 4096 bytes, so paths are shown whole.
const PATH_CHARS_MAX: usize = 4096;

impl ValueOrigin {
    /// The line, counted from 1; 0 where there are no lines.
    pub fn line(&self) -> usize {
        match self {
            Self::BuiltIn { line } | Self::User { line, .. } | Self::Project { line, .. } => *line,
            Self::Environment { .. } | Self::Flag { .. } => 0,
        }
    }
}

impl ConfigErrors {
    /// Puts the problems in the order of the layers, of the files from outermost to innermost, and of the lines; what
    /// concerns a file as a whole comes last in it.
    pub(crate) fn sorted(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| {
            let line = problem.origin.line().checked_sub(1).unwrap_or(usize::MAX);
            match &problem.origin {
                ValueOrigin::BuiltIn { .. } => (0, 0, line),
                ValueOrigin::User { .. } => (1, 0, line),
                ValueOrigin::Project { path, .. } => (2, path.components().count(), line),
                ValueOrigin::Environment { .. } => (3, 0, 0),
                ValueOrigin::Flag { .. } => (4, 0, 0),
            }
        });
        Self { problems }
    }
}

impl Problem {
    /// A problem without a column.
    pub(crate) fn new(origin: ValueOrigin, message: String) -> Self {
        Self {
            origin,
            column: 0,
            message,
        }
    }
}

/// A path as messages show it: on one line, whole.
pub(crate) fn path_text(path: &Path) -> String {
    one_line(&path.to_string_lossy(), PATH_CHARS_MAX)
}

/// A path that is not Unicode is shown with replacement characters rather than not at all.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn { .. } => f.write_str("built-in"),
            Self::User { path, line } | Self::Project { path, line } => {
                f.write_str(&path_text(path))?;
                if *line > 0 {
                    write!(f, ":{line}")?;
                }
                Ok(())
            }
            Self::Environment { variable } => f.write_str(&one_line(variable, PATH_CHARS_MAX)),
            Self::Flag { flag } => f.write_str(&one_line(flag, PATH_CHARS_MAX)),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin)?;
        if self.column > 0 {
            write!(f, ":{}", self.column)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
