//! A line of the audit file with its code: `{…,"seq":N,"code":"HEX"}`. The code is over the line before, the number, and all bytes of the line
//! up to the number.

use serde::{Deserialize, Serialize};

use crate::audit::code::{CODE_BYTES, Code, from_hex, hex};
use crate::secrets::audit_keys::AuditKey;

/// How a line of the chain itself begins.
const MARK_BEGINNING: &[u8] = b"{\"event\":\"chain\",";

const BEFORE_SEQ: &[u8] = b",\"seq\":";
const BEFORE_CODE: &[u8] = b",\"code\":\"";
const AFTER_CODE: &[u8] = b"\"}";

/// Most digits of a number.
const DIGITS_MAX: usize = 20;

/// Bytes that a code adds to a line at most.
pub(super) const CODE_LINE_BYTES: usize = 7 + DIGITS_MAX + 9 + 2 * CODE_BYTES + 2;

/// A line whose end is as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChainedLine<'a> {
    pub(super) seq: u64,
    pub(super) code: Code,
    /// The bytes before the number.
    pub(super) body: &'a [u8],
}

/// Why there is a line of the chain itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MarkReason {
    /// The chain begins; what is before it is not vouched for.
    Start,
    /// The file was full, and is the older one now.
    Rotation,
    /// The file was moved away or removed by another program.
    Replaced,
    /// Another key takes over.
    Key,
    /// The last line was not whole: a host died while it wrote it. It was never counted, and is quoted here.
    Repair,
}

/// A line of the chain itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileMark {
    pub(super) event: String,
    /// Unix seconds.
    pub(super) timestamp: String,
    pub(super) reason: MarkReason,
    /// The key of this line and of those after it.
    pub(super) key: String,
    /// The code of the line before.
    pub(super) previous: String,
    /// Lines up to this number are kept nowhere, as far as the host knows; and the code of the last of them.
    pub(super) removed: u64,
    pub(super) removed_code: String,
    /// Bytes before this line that nothing vouches for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) before_bytes: u64,
    /// Of a line that was not whole: its bytes, and how it began.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) torn_bytes: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) torn: String,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl<'a> ChainedLine<'a> {
    /// Reads a line without its line end; none when it has no code.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let rest = line.strip_suffix(AFTER_CODE)?;
        let (rest, digits) = rest.split_at_checked(rest.len().checked_sub(2 * CODE_BYTES)?)?;
        let rest = rest.strip_suffix(BEFORE_CODE)?;
        let n_digits = rest.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let (rest, number) = rest.split_at_checked(rest.len().checked_sub(n_digits)?)?;
        let is_plain = n_digits <= DIGITS_MAX && !number.starts_with(b"0");
        let number = std::str::from_utf8(number).ok().filter(|_| is_plain)?;
        Some(Self {
            seq: number.parse().ok()?,
            code: from_hex(digits)?,
            body: rest.strip_suffix(BEFORE_SEQ)?,
        })
    }

    /// Whether it comes after the line with the code `previous`.
    pub(super) fn follows(&self, previous: &Code, key: &AuditKey) -> bool {
        code(self.body, self.seq, previous, key) == self.code
    }

    /// What it says, when it is one of the chain itself.
    pub(super) fn mark(&self) -> Option<FileMark> {
        if !self.body.starts_with(MARK_BEGINNING) {
            return None;
        }
        serde_json::from_slice(&[self.body, b"}"].concat()).ok()
    }
}

impl FileMark {
    pub(super) fn new(reason: MarkReason, key: &AuditKey, previous: &Code, at_ms: i64) -> Self {
        Self {
            event: "chain".to_owned(),
            timestamp: at_ms.div_euclid(1000).to_string(),
            reason,
            key: key.id.clone(),
            previous: hex(previous),
            removed: 0,
            removed_code: hex(&[0; CODE_BYTES]),
            before_bytes: 0,
            torn_bytes: 0,
            torn: String::new(),
        }
    }

    /// As a line with its end, without a code.
    pub(super) fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// Adds a line, given without a code and with its end, behind that with the code `previous`; its code.
pub(super) fn put(
    text: &mut Vec<u8>,
    line: &[u8],
    seq: u64,
    previous: &Code,
    key: &AuditKey,
) -> Code {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let body = line.strip_suffix(b"}").unwrap_or(line);
    let code = code(body, seq, previous, key);
    text.extend_from_slice(body);
    text.extend_from_slice(BEFORE_SEQ);
    text.extend_from_slice(seq.to_string().as_bytes());
    text.extend_from_slice(BEFORE_CODE);
    text.extend_from_slice(hex(&code).as_bytes());
    text.extend_from_slice(AFTER_CODE);
    text.push(b'\n');
    code
}

fn code(body: &[u8], seq: u64, previous: &Code, key: &AuditKey) -> Code {
    key.line.code(&[previous, &seq.to_be_bytes(), body])
}
