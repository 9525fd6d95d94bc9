//! How a person names a call whose ID is too long to type.

use std::fmt;
use std::str::FromStr;

use super::CallId;

/// The fewest characters that name a call: the first eight of an ID change once a minute.
const CHARS_MIN: usize = 4;

/// The characters of an ID.
const CHARS_MAX: usize = 36;

/// The beginning of a [`CallId`], or all of it, as it is printed.
///
/// Shape: 4 to 36 hexadecimal digits and hyphens, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPrefix(String);

/// An invalid [`CallPrefix`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("wanted the ID of a call, or at least its first {CHARS_MIN} characters")]
pub struct BadCallPrefix;

impl CallPrefix {
    /// The text that IDs begin with.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CallPrefix {
    type Err = BadCallPrefix;

    fn from_str(text: &str) -> Result<Self, BadCallPrefix> {
        let text = text.trim().to_ascii_lowercase();
        // One that is written in another way, such as without hyphens.
        if let Ok(whole) = text.parse::<CallId>() {
            return Ok(Self(whole.to_string()));
        }
        let is_of_id = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        let length_ok = (CHARS_MIN..=CHARS_MAX).contains(&text.len());
        match length_ok && text.bytes().all(is_of_id) {
            true => Ok(Self(text)),
            false => Err(BadCallPrefix),
        }
    }
}

impl From<CallId> for CallPrefix {
    fn from(call: CallId) -> Self {
        Self(call.to_string())
    }
}

impl fmt::Display for CallPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::CallPrefix;

    #[test]
    fn beginnings_of_ids() {
        let whole = "01938c2e-5a51-7cc3-98f2-8c1f9a3b7e10";
        for (given, expect) in [
            (whole, Some(whole)),
            ("01938c2e5a517cc398f28c1f9a3b7e10", Some(whole)),
            (" 01938C2E-5a ", Some("01938c2e-5a")),
            ("0193", Some("0193")),
            ("019", None),
            ("", None),
            ("0193*", None),
            ("xxxx", None),
            ("01938c2e-5a51-7cc3-98f2-8c1f9a3b7e100", None),
        ] {
            let prefix: Option<CallPrefix> = given.parse().ok();
            assert_eq!(prefix.as_ref().map(CallPrefix::as_str), expect, "{given}");
        }
    }
}
