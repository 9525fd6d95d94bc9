//! The first message of TLS, read before anything is dialled: which server its sender asks for.
//!
//! A ClientHello stands in one or more records, and its bytes arrive in any pieces. It is put together here, and read as strictly as a
//! server reads it: what two readers could understand differently is refused.
//!
//! Source: RFC 8446 (sections 4.1.2, 4.2, 5.1), RFC 6066 (section 3), RFC 9849.

use std::collections::BTreeSet;

use zeph_core::network::Host;

/// Most bytes until a ClientHello is whole, with the heads of its records.
pub(super) const HELLO_BYTES_MAX: usize = 16 * 1024;

/// Bytes before the content of a record: its type, two of a version, two of its length.
const RECORD_HEAD: usize = 5;

/// Most bytes of the content of a record that is not encrypted.
const RECORD_BYTES_MAX: usize = 16 * 1024;

/// Bytes before the body of a handshake message: its type, three of its length.
const MESSAGE_HEAD: usize = 4;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// What hides the server name: `encrypted_client_hello`, what stands for it inside, and the drafts before it.
const ENCRYPTED: [u16; 6] = [0xfe0d, 0xfd00, 0xfe08, 0xfe09, 0xfe0a, 0xffce];

/// Why a connection is not taken for one of TLS to its target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadHello {
    #[error("what is sent is not TLS")]
    NotTls,
    #[error("the first message of TLS is longer than {HELLO_BYTES_MAX} bytes")]
    TooLong,
    #[error("the first message of TLS is malformed")]
    Malformed,
    #[error("the first message of TLS names no server")]
    NoName,
    #[error("the first message of TLS names more than one server")]
    SeveralNames,
    #[error("the first message of TLS names an address, not a server")]
    Address,
    #[error("the first message of TLS hides the server's name (encrypted_client_hello)")]
    Encrypted,
    #[error("the first message of TLS names another server")]
    OtherName,
}

/// A ClientHello while it arrives.
#[derive(Debug, Default)]
pub(super) struct HelloReader {
    /// All that arrived; what is dialled gets it as it came.
    bytes: Vec<u8>,
    /// How much of it was taken apart.
    n_read: usize,
    /// The handshake message, out of its records.
    message: Vec<u8>,
}

impl HelloReader {
    /// Adds what arrived. Gives the name that is asked for once the message is whole.
    ///
    /// Errors: [`BadHello`]; the connection is of no use then.
    pub(super) fn push(&mut self, more: &[u8]) -> Result<Option<Host>, BadHello> {
        self.bytes.extend_from_slice(more);
        while let Some(content) = self.next_record()? {
            self.message.extend_from_slice(&self.bytes[content]);
            if let Some(body) = whole_message(&self.message)? {
                return server_name(body).map(Some);
            }
        }
        match self.bytes.len() >= HELLO_BYTES_MAX {
            true => Err(BadHello::TooLong),
            false => Ok(None),
        }
    }

    /// All that arrived.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Where the content of the next whole record stands.
    fn next_record(&mut self) -> Result<Option<std::ops::Range<usize>>, BadHello> {
        let rest = &self.bytes[self.n_read..];
        // The first bytes tell, so that nobody waits for the rest of what is something else.
        if rest.first().is_some_and(|kind| *kind != HANDSHAKE)
            || rest.get(1).is_some_and(|major| *major != 3)
        {
            return Err(BadHello::NotTls);
        }
        let Some((head, rest)) = rest.split_first_chunk::<RECORD_HEAD>() else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
        if length == 0 || length > RECORD_BYTES_MAX {
            return Err(BadHello::Malformed);
        }
        if rest.len() < length {
            return Ok(None);
        }
        let start = self.n_read + RECORD_HEAD;
        self.n_read = start + length;
        Ok(Some(start..self.n_read))
    }
}

/// The body of a ClientHello that is all there.
fn whole_message(message: &[u8]) -> Result<Option<&[u8]>, BadHello> {
    if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return Err(BadHello::Malformed);
    }
    let Some((head, body)) = message.split_first_chunk::<MESSAGE_HEAD>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([0, head[1], head[2], head[3]]) as usize;
    if length > HELLO_BYTES_MAX {
        return Err(BadHello::TooLong);
    }
    match body.len() {
        arrived if arrived < length => Ok(None),
        arrived if arrived == length => Ok(Some(body)),
        // Nothing follows it in the same record.
        _ => Err(BadHello::Malformed),
    }
}

/// The name in the body of a ClientHello.
fn server_name(body: &[u8]) -> Result<Host, BadHello> {
    let mut input = Input(body);
    let extensions = extensions(&mut input).ok_or(BadHello::Malformed)?;
    let mut seen = BTreeSet::new();
    let mut name = None;
    let mut input = Input(extensions);
    while !input.0.is_empty() {
        let (kind, content) = extension(&mut input).ok_or(BadHello::Malformed)?;
        let is_name = kind == SERVER_NAME;
        match seen.insert(kind) {
            false if is_name => return Err(BadHello::SeveralNames),
            false => return Err(BadHello::Malformed),
            true if ENCRYPTED.contains(&kind) => return Err(BadHello::Encrypted),
            true if is_name => name = Some(only_name(content)?),
            true => {}
        }
    }
    name.ok_or(BadHello::NoName)
}

/// The list of extensions, which is the end of the message; empty where there is none.
fn extensions<'a>(input: &mut Input<'a>) -> Option<&'a [u8]> {
    const VERSION_AND_RANDOM: usize = 2 + 32;
    input.take(VERSION_AND_RANDOM)?;
    let session = input.short_list()?;
    let suites = input.list()?;
    let compression = input.short_list()?;
    let is_fine = session.len() <= 32
        && !suites.is_empty()
        && suites.len().is_multiple_of(2)
        && !compression.is_empty();
    if !is_fine {
        return None;
    }
    if input.0.is_empty() {
        return Some(&[]);
    }
    let extensions = input.list()?;
    input.0.is_empty().then_some(extensions)
}

fn extension<'a>(input: &mut Input<'a>) -> Option<(u16, &'a [u8])> {
    Some((input.number()?, input.list()?))
}

/// The name in the extension of server names.
fn only_name(content: &[u8]) -> Result<Host, BadHello> {
    let mut outer = Input(content);
    let list = outer.list().filter(|_| outer.0.is_empty());
    let mut names = Input(list.ok_or(BadHello::Malformed)?);
    let kind = names.byte().ok_or(BadHello::Malformed)?;
    let name = names.list().ok_or(BadHello::Malformed)?;
    if !names.0.is_empty() {
        return Err(BadHello::SeveralNames);
    }
    let name = std::str::from_utf8(name).map_err(|_| BadHello::Malformed)?;
    let host: Host = name.parse().map_err(|_| BadHello::Malformed)?;
    match host.name() {
        _ if kind != HOST_NAME => Err(BadHello::Malformed),
        None => Err(BadHello::Address),
        // As it was sent: a final dot, or letters that are mapped, would be read otherwise by others.
        Some(read) if read.eq_ignore_ascii_case(name) => Ok(host),
        Some(_) => Err(BadHello::Malformed),
    }
}

/// What is left to be read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(*self.take(2)?.first_chunk()?))
    }

    /// What one byte gives the length of.
    fn short_list(&mut self) -> Option<&'a [u8]> {
        let length = self.byte()?;
        self.take(length.into())
    }

    /// What two bytes give the length of.
    fn list(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(length.into())
    }
}

#[cfg(test)]
mod tests;
