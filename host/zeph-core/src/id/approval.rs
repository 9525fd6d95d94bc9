//! The ID of a pending call, short enough to type.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The ID of a pending call, and later of its approval.
///
/// Shape: eight of [`DIGITS`], 40 random bits. It is not a secret: only a user can approve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ApprovalId(u64);

/// An invalid [`ApprovalId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an approval is named by eight letters and digits, such as `k7m2x9qd`")]
pub struct BadApprovalId;

/// Lower-case letters and digits without `i`, `l`, `o` and `u`, which are misread. Source: Crockford's base 32.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Digits of an ID. Forty bits cannot be guessed among a thousand pending calls, and can still be typed.
const N_DIGITS: u32 = 8;

/// Bits of a digit.
const DIGIT_BITS: u32 = 5;

impl ApprovalId {
    /// Creates a random ID.
    #[expect(
        clippy::new_without_default,
        reason = "each value differs: a default would mislead"
    )]
    pub fn new() -> Self {
        // The last 48 bits of a version 4 UUID are random.
        let (_, random) = Uuid::new_v4().as_u64_pair();
        Self(random & ((1 << (N_DIGITS * DIGIT_BITS)) - 1))
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |n: u32| {
            let [low, ..] = (self.0 >> (n * DIGIT_BITS)).to_le_bytes();
            DIGITS[usize::from(low & 31)]
        };
        let text: String = (0..N_DIGITS).rev().map(|n| char::from(digit(n))).collect();
        f.pad(&text)
    }
}

impl FromStr for ApprovalId {
    type Err = BadApprovalId;

    /// Reads an ID as typed by a person: with capitals, hyphens, and `o`, `i`, `l` for the digits they resemble.
    fn from_str(text: &str) -> Result<Self, BadApprovalId> {
        let mut bits = 0;
        let mut n_digits = 0;
        for byte in text.bytes().filter(|byte| *byte != b'-') {
            let byte = match byte.to_ascii_lowercase() {
                b'o' => b'0',
                b'i' | b'l' => b'1',
                other => other,
            };
            let digit = DIGITS.iter().position(|digit| *digit == byte);
            let digit = digit.ok_or(BadApprovalId)? as u64;
            bits = (bits << DIGIT_BITS) | digit;
            n_digits += 1;
            if n_digits > N_DIGITS {
                return Err(BadApprovalId);
            }
        }
        match n_digits {
            N_DIGITS => Ok(Self(bits)),
            _ => Err(BadApprovalId),
        }
    }
}

impl TryFrom<String> for ApprovalId {
    type Error = BadApprovalId;

    fn try_from(text: String) -> Result<Self, BadApprovalId> {
        text.parse()
    }
}

impl From<ApprovalId> for String {
    fn from(id: ApprovalId) -> Self {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::ApprovalId;

    #[test]
    fn an_id_is_read_as_it_is_typed() {
        let table = [
            ("k7m2x9qd", Some("k7m2x9qd")),
            ("K7M2-X9QD", Some("k7m2x9qd")),
            ("00000000", Some("00000000")),
            ("zzzzzzzz", Some("zzzzzzzz")),
            ("oOiIlL00", Some("00111100")),
            ("", None),
            ("k7m2x9q", None),
            ("k7m2x9qdd", None),
            ("zzzzzzzzzzzzzzzzzzzzzzzz", None),
            ("k7m2x9qu", None),
            ("k7m2x9q ", None),
            ("k7m2x9qé", None),
        ];
        for (text, expect) in table {
            let id = text.parse::<ApprovalId>().ok();
            assert_eq!(id.map(|id| id.to_string()).as_deref(), expect, "{text}");
        }
    }

    #[test]
    fn new_ids_differ_and_come_back() {
        let ids: std::collections::BTreeSet<ApprovalId> =
            (0..1_000).map(|_| ApprovalId::new()).collect();
        assert!(ids.len() > 998);
        for id in ids {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
    }
}
