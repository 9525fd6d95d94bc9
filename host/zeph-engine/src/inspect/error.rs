//! Why bytes are not a readable component, for the person who supplied them.

use std::fmt;

use serde::Serialize;
use wasmparser::Parser;
use zeph_core::text::plain_line;

use super::MadeFor;
use crate::component::COMPONENT_BYTES_MAX;

/// Most characters of what the validator says.
const REASON_CHARS_MAX: usize = 300;

/// Bytes that are no component.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// There are none.
    #[error("the file is empty")]
    Empty,
    /// They end in the middle of a component: the file may still be being written.
    #[error("the file ends in the middle of a component; it seems incomplete")]
    Truncated,
    /// There are too many.
    #[error("the file has {n_bytes} bytes; the most a component may have is {COMPONENT_BYTES_MAX}")]
    TooLarge {
        /// How many.
        n_bytes: u64,
    },
    /// They are something else.
    #[error("this is not a WebAssembly component but {0}")]
    NotWasm(ForeignFile),
    /// They are a core module, the part a component is made of.
    #[error("this is a core WebAssembly module, not a component{0}")]
    CoreModule(MadeFor),
    /// WebAssembly of an unsupported version.
    #[error("this is WebAssembly of a version this host does not know ({0:#010x})")]
    UnknownVersion(u32),
    /// A component that breaks the rules of its format, or uses what this host does not have.
    #[error("the component is not valid for this host: {0}")]
    Invalid(String),
}

/// Files that are often mistaken for a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ForeignFile {
    /// The native code of a wasm engine (`.cwasm`), or any other program. Never loaded, because it cannot be checked.
    Native,
    /// WebAssembly as text.
    WasmText,
    /// A web page, as failed downloads are.
    WebPage,
    /// A packed file.
    Archive,
    /// Some text.
    Text,
    /// Anything.
    Unknown,
}

impl InspectError {
    /// Whether the rest may still be on its way.
    pub fn is_incomplete(&self) -> bool {
        matches!(self, Self::Empty | Self::Truncated)
    }

    pub(super) fn invalid(error: &wasmparser::Error) -> Self {
        let offset = error.offset();
        let message = plain_line(error.message(), REASON_CHARS_MAX);
        Self::Invalid(format!("{message} (at byte {offset})"))
    }

    /// What the first bytes say; none when they begin a component.
    pub(super) fn of_header(bytes: &[u8]) -> Option<Self> {
        const MAGIC: &[u8] = b"\0asm";
        if bytes.is_empty() {
            return Some(Self::Empty);
        }
        if !bytes.starts_with(MAGIC) {
            return Some(match MAGIC.starts_with(bytes) {
                true => Self::Truncated,
                false => Self::NotWasm(ForeignFile::of(bytes)),
            });
        }
        let Some(version) = bytes.get(4..8) else {
            return Some(Self::Truncated);
        };
        if Parser::is_component(bytes) {
            return None;
        }
        if Parser::is_core_wasm(bytes) {
            return Some(Self::CoreModule(MadeFor::of(bytes)));
        }
        let version = version
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u32::from(*byte));
        Some(Self::UnknownVersion(version))
    }
}

impl ForeignFile {
    fn of(bytes: &[u8]) -> Self {
        let head = &bytes[..bytes.len().min(1024)];
        let begins = |starts: &[&[u8]]| starts.iter().any(|start| head.starts_with(start));
        if begins(&[b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"]) {
            return Self::Native;
        }
        if begins(&[
            b"\x1f\x8b",
            b"PK\x03\x04",
            b"\x28\xb5\x2f\xfd",
            b"BZh",
            b"\xfd7zXZ",
        ]) {
            return Self::Archive;
        }
        let Some(text) = text(head) else {
            return Self::Unknown;
        };
        let text = text
            .trim_start_matches('\u{feff}')
            .trim_start()
            .to_ascii_lowercase();
        let begins = |starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
        if begins(&["(module", "(component", ";;", "(;"]) {
            return Self::WasmText;
        }
        if begins(&["<!doctype", "<html"]) {
            return Self::WebPage;
        }
        Self::Text
    }
}

/// The bytes as text; a character that is cut off at the end does not count.
fn text(head: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_text = |character: char| !character.is_control() || character.is_whitespace();
    text.chars().all(is_text).then_some(text)
}

impl fmt::Display for ForeignFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => {
                "native code (a program, or a compiled `.cwasm`), which this host never loads; bring the `.wasm` it was made from"
            }
            Self::WasmText => "its text form; assemble it, for example with `wasm-tools parse`",
            Self::WebPage => "a web page; the download may have failed",
            Self::Archive => "a packed file; unpack it first",
            Self::Text => "a text",
            Self::Unknown => "something else",
        })
    }
}
