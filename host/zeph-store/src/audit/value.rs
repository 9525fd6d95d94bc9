//! Values of columns of the audit, whatever the database, and the bytes that a tag is made over.
//!
//! The bytes are the same on every database, so that a chain that is copied from one to another stays good.

use std::borrow::Cow;

/// A value as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Null,
    Integer(i64),
    /// An integer where the database knows no flags.
    Flag(bool),
    Text(Cow<'a, str>),
}

/// A value as bytes of a tag: what a database may hold, even where this program never puts it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TaggedValue<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a [u8]),
    Blob(&'a [u8]),
}

impl Value<'_> {
    pub(crate) fn tagged(&self) -> TaggedValue<'_> {
        match self {
            Self::Null => TaggedValue::Null,
            Self::Integer(number) => TaggedValue::Integer(*number),
            Self::Flag(flag) => TaggedValue::Integer(i64::from(*flag)),
            Self::Text(text) => TaggedValue::Text(text.as_bytes()),
        }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Self::Integer(i64::from(number))
    }
}

impl From<i32> for Value<'_> {
    fn from(number: i32) -> Self {
        Self::Integer(i64::from(number))
    }
}

impl From<bool> for Value<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// What a tag is made over: the first value has the number `first`.
pub(crate) fn record_bytes(first: u8, values: &[Value<'_>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1024);
    put_all(&mut bytes, first, values);
    bytes
}

/// Adds what a tag is made over.
pub(crate) fn put_all(bytes: &mut Vec<u8>, first: u8, values: &[Value<'_>]) {
    for (number, value) in (first..).zip(values) {
        put(bytes, number, value.tagged());
    }
}

/// One value: its number, its type, its length where that can differ, its bytes. Null adds nothing.
pub(crate) fn put(bytes: &mut Vec<u8>, number: u8, value: TaggedValue<'_>) {
    let mut long = |kind: u8, content: &[u8]| {
        bytes.extend_from_slice(&[number, kind]);
        bytes.extend_from_slice(&(content.len() as u64).to_be_bytes());
        bytes.extend_from_slice(content);
    };
    match value {
        TaggedValue::Null => {}
        TaggedValue::Integer(value) => {
            bytes.extend_from_slice(&[number, b'i']);
            bytes.extend_from_slice(&value.to_be_bytes());
        }
        TaggedValue::Real(value) => {
            bytes.extend_from_slice(&[number, b'r']);
            bytes.extend_from_slice(&value.to_be_bytes());
        }
        TaggedValue::Text(text) => long(b't', text),
        TaggedValue::Blob(blob) => long(b'b', blob),
    }
}
