//! The user's message bus: calls and their answers, one at a time, over a Unix socket.
//!
//! Source: D-Bus Specification 0.43, sections "Type System", "Message Protocol" and "Authentication Protocol".

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;

use super::KeyringError;

/// How long an answer may take: a service that is not running is started first.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of one message, and of one line before messages begin.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
const LINE_BYTES_MAX: u64 = 4096;

/// Messages of others that are passed over while an answer is awaited.
const OTHERS_MAX: usize = 1_000;

const CALL: u8 = 1;
const RETURN: u8 = 2;
const ERROR: u8 = 3;

/// A connection to the bus.
pub(super) struct Bus {
    stream: BufReader<UnixStream>,
    serial: u32,
}

/// Who is called, and what for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Method<'a> {
    pub(super) destination: &'a str,
    pub(super) path: &'a str,
    pub(super) interface: &'a str,
    pub(super) member: &'a str,
    /// The types of the arguments.
    pub(super) signature: &'a str,
}

impl Bus {
    /// Connects to the first of the addresses that can be reached.
    pub(super) fn connect(addresses: &str) -> Result<Self, KeyringError> {
        let mut problem = "no message bus is known".to_owned();
        for address in addresses.split(';').filter_map(socket_address) {
            let stream = address.and_then(|address| UnixStream::connect_addr(&address));
            match stream.and_then(Self::begin) {
                Ok(mut bus) => {
                    bus.call(&bus_method("Hello"), Writer::default())?;
                    return Ok(bus);
                }
                Err(error) => problem = format!("the message bus: {error}"),
            }
        }
        Err(KeyringError::Absent(problem))
    }

    /// Says who we are. Nobody else's bus is spoken to.
    fn begin(stream: UnixStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let us = rustix::process::geteuid();
        if socket_peercred(&stream)?.uid != us {
            return Err(io::Error::other("it belongs to another user"));
        }
        let digits = us.as_raw().to_string();
        let user: String = digits.bytes().map(|byte| format!("{byte:02x}")).collect();
        let mut stream = BufReader::new(stream);
        write!(stream.get_mut(), "\0AUTH EXTERNAL {user}\r\n")?;
        let mut line = String::new();
        stream.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)?;
        if !line.starts_with("OK ") {
            return Err(io::Error::other("it does not accept this user"));
        }
        stream.get_mut().write_all(b"BEGIN\r\n")?;
        Ok(Self { stream, serial: 0 })
    }

    /// Makes a call and waits for its answer.
    pub(super) fn call(
        &mut self,
        method: &Method<'_>,
        arguments: Writer,
    ) -> Result<Reader, KeyringError> {
        self.serial += 1;
        let message = message(self.serial, method, &arguments.bytes)?;
        let sent = self.stream.get_mut().write_all(&message);
        sent.map_err(|error| failed(method, &error))?;
        for _ in 0..OTHERS_MAX {
            let answer = self.read().map_err(|error| failed(method, &error))?;
            if answer.replies_to != Some(self.serial) {
                continue;
            }
            return match answer.kind {
                RETURN => Ok(answer.body),
                _ => Err(refused(method, answer)),
            };
        }
        Err(KeyringError::Failed("it never answers".to_owned()))
    }

    fn read(&mut self) -> io::Result<Answer> {
        let mut fixed = [0; 16];
        self.stream.read_exact(&mut fixed)?;
        let is_big = fixed[0] == b'B';
        let mut head = Reader::new(fixed.to_vec(), is_big);
        head.at = 4;
        let n_body = head.u32().and_then(within).ok_or_else(garbled)?;
        head.at = 12;
        let n_fields = head.u32().and_then(within).ok_or_else(garbled)?;
        let mut rest = vec![0; n_fields.next_multiple_of(8) + n_body];
        self.stream.read_exact(&mut rest)?;
        let body = rest.split_off(n_fields.next_multiple_of(8));
        rest.truncate(n_fields);
        let mut fields = fixed.to_vec();
        fields.extend(rest);
        let mut fields = Reader::new(fields, is_big);
        fields.at = 16;
        let mut answer = Answer {
            kind: fixed[1],
            replies_to: None,
            error: None,
            body: Reader::new(body, is_big),
        };
        while fields.at < fields.bytes.len() {
            fields.header_field(&mut answer).ok_or_else(garbled)?;
        }
        Ok(answer)
    }
}

/// A method of the bus itself.
fn bus_method(member: &str) -> Method<'_> {
    Method {
        destination: "org.freedesktop.DBus",
        path: "/org/freedesktop/DBus",
        interface: "org.freedesktop.DBus",
        member,
        signature: "",
    }
}

/// The socket of one address; none for another transport.
fn socket_address(address: &str) -> Option<io::Result<SocketAddr>> {
    let fields = address.trim().strip_prefix("unix:")?.split(',');
    let mut fields = fields.filter_map(|field| field.split_once('='));
    let (key, value) = fields.find(|(key, _)| matches!(*key, "path" | "abstract"))?;
    let value = percent_encoding_free(value)?;
    Some(match key {
        "path" => SocketAddr::from_pathname(value),
        _ => SocketAddr::from_abstract_name(value),
    })
}

/// A value with `%41` for `A`.
fn percent_encoding_free(value: &str) -> Option<String> {
    let mut parts = value.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

fn message(serial: u32, method: &Method<'_>, body: &[u8]) -> Result<Vec<u8>, KeyringError> {
    let n_body = u32::try_from(body.len())
        .ok()
        .filter(|n| within(*n).is_some());
    let n_body = n_body.ok_or_else(|| KeyringError::Failed("the value is too long".to_owned()))?;
    let mut head = Writer::default();
    head.bytes.extend([b'l', CALL, 0, 1]);
    head.u32(n_body);
    head.u32(serial);
    head.array(8, |fields| {
        for (code, kind, text) in [
            (1, "o", method.path),
            (2, "s", method.interface),
            (3, "s", method.member),
            (6, "s", method.destination),
        ] {
            fields.align(8);
            fields.bytes.push(code);
            fields.signature(kind);
            fields.text(text);
        }
        if !method.signature.is_empty() {
            fields.align(8);
            fields.bytes.push(8);
            fields.signature("g");
            fields.signature(method.signature);
        }
    });
    head.align(8);
    head.bytes.extend(body);
    Ok(head.bytes)
}

/// What came back.
struct Answer {
    kind: u8,
    replies_to: Option<u32>,
    /// The name of the error.
    error: Option<String>,
    body: Reader,
}

fn failed(method: &Method<'_>, error: &io::Error) -> KeyringError {
    KeyringError::Failed(format!("`{}`: {error}", method.member))
}

fn garbled() -> io::Error {
    io::Error::other("a message makes no sense")
}

fn refused(method: &Method<'_>, answer: Answer) -> KeyringError {
    let name = answer.error.unwrap_or_default();
    let last = name.rsplit('.').next().unwrap_or_default();
    match last {
        "ServiceUnknown" | "NameHasNoOwner" | "UnknownObject" => {
            KeyringError::Absent("no service of the desktop keeps secrets".to_owned())
        }
        "IsLocked" => KeyringError::Locked,
        // What starts a service failed: it cannot run here.
        _ if answer.kind == ERROR && name.contains(".Spawn.") => {
            KeyringError::Absent("the service that keeps secrets does not start".to_owned())
        }
        _ => KeyringError::Failed(format!("`{}`: {last}", method.member)),
    }
}

fn within(n: u32) -> Option<usize> {
    usize::try_from(n).ok().filter(|n| *n <= MESSAGE_BYTES_MAX)
}

/// Values as they are sent, each aligned to its size.
#[derive(Debug, Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn align(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    fn u32(&mut self, value: u32) {
        self.align(4);
        self.bytes.extend(value.to_le_bytes());
    }

    /// A string or the path of an object.
    pub(super) fn text(&mut self, text: &str) {
        self.blob(text.as_bytes());
        self.bytes.push(0);
    }

    /// An array of bytes.
    pub(super) fn blob(&mut self, bytes: &[u8]) {
        self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.bytes.extend(bytes);
    }

    /// A signature of fewer than 256 characters.
    pub(super) fn signature(&mut self, signature: &str) {
        self.bytes.push(u8::try_from(signature.len()).unwrap_or(0));
        self.bytes.extend(signature.as_bytes());
        self.bytes.push(0);
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.u32(u32::from(value));
    }

    /// An array, whose first item is aligned even if there is none.
    pub(super) fn array(&mut self, align: usize, items: impl FnOnce(&mut Self)) {
        self.u32(0);
        let length = self.bytes.len() - 4;
        self.align(align);
        let first = self.bytes.len();
        items(self);
        let n_bytes = u32::try_from(self.bytes.len() - first).unwrap_or(u32::MAX);
        self.bytes[length..length + 4].copy_from_slice(&n_bytes.to_le_bytes());
    }
}

/// Values as they came. `None` where they do not stand.
#[derive(Debug)]
pub(super) struct Reader {
    bytes: Vec<u8>,
    at: usize,
    is_big: bool,
}

impl Reader {
    fn new(bytes: Vec<u8>, is_big: bool) -> Self {
        Self {
            bytes,
            at: 0,
            is_big,
        }
    }

    fn take(&mut self, n: usize) -> Option<&[u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(n)?)?;
        self.at += n;
        Some(taken)
    }

    pub(super) fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.align(4);
        let is_big = self.is_big;
        let bytes = *self.take(4)?.first_chunk()?;
        Some(match is_big {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        })
    }

    pub(super) fn bool(&mut self) -> Option<bool> {
        Some(self.u32()? != 0)
    }

    /// An array of bytes.
    pub(super) fn blob(&mut self) -> Option<Vec<u8>> {
        let n = self.u32().and_then(within)?;
        Some(self.take(n)?.to_vec())
    }

    /// A string or the path of an object.
    pub(super) fn text(&mut self) -> Option<String> {
        let text = String::from_utf8(self.blob()?).ok()?;
        self.take(1)?;
        Some(text)
    }

    pub(super) fn signature(&mut self) -> Option<String> {
        let n = usize::from(*self.take(1)?.first()?);
        let text = String::from_utf8(self.take(n)?.to_vec()).ok()?;
        self.take(1)?;
        Some(text)
    }

    /// An array of strings or paths.
    pub(super) fn texts(&mut self) -> Option<Vec<String>> {
        let n_bytes = self.u32().and_then(within)?;
        let end = self.at.checked_add(n_bytes)?;
        let mut texts = Vec::new();
        while self.at < end {
            texts.push(self.text()?);
        }
        Some(texts)
    }

    /// One field of a header; those that say nothing of an answer are passed over.
    fn header_field(&mut self, answer: &mut Answer) -> Option<()> {
        self.align(8);
        let code = *self.take(1)?.first()?;
        match self.signature()?.as_str() {
            "u" => {
                let number = self.u32()?;
                if code == 5 {
                    answer.replies_to = Some(number);
                }
            }
            "s" | "o" => {
                let text = self.text()?;
                if code == 4 {
                    answer.error = Some(text);
                }
            }
            "g" => drop(self.signature()?),
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Reader, Writer, socket_address};

    #[test]
    fn values_are_read_as_they_were_written() {
        let mut writer = Writer::default();
        writer.bool(true);
        writer.text("a text");
        writer.array(8, |_| {});
        writer.array(4, |items| {
            ["/a", "/bc"].iter().for_each(|one| items.text(one));
        });
        writer.blob(b"\0\xff");
        writer.signature("a{ss}");
        let mut reader = Reader::new(writer.bytes, false);
        assert_eq!(reader.bool(), Some(true));
        assert_eq!(reader.text().as_deref(), Some("a text"));
        assert_eq!(reader.u32(), Some(0));
        reader.align(8);
        assert_eq!(reader.texts(), Some(vec!["/a".into(), "/bc".into()]));
        assert_eq!(reader.blob(), Some(b"\0\xff".to_vec()));
        assert_eq!(reader.signature().as_deref(), Some("a{ss}"));
        assert_eq!(reader.u32(), None);
    }

    #[test]
    fn what_no_bus_sends_is_refused_without_a_panic() {
        for bytes in [
            &[0xff; 64][..],
            &[],
            &[3, 0, 0, 0, b'a'],
            &[0xff, 0xff, 0, 0],
        ] {
            let reader = || Reader::new(bytes.to_vec(), false);
            assert_eq!(reader().text(), None);
            assert_eq!(reader().blob(), None);
            assert_eq!(reader().texts().filter(|texts| !texts.is_empty()), None);
        }
    }

    #[test]
    fn addresses_of_sockets_are_known() {
        for (address, is_socket) in [
            ("unix:path=/run/user/1/bus", true),
            ("unix:guid=ab,path=/tmp/a%20b", true),
            ("unix:abstract=/tmp/dbus-x,guid=1", true),
            ("tcp:host=localhost,port=1", false),
            ("unix:runtime=yes", false),
            ("", false),
        ] {
            assert_eq!(socket_address(address).is_some(), is_socket, "{address}");
        }
    }
}
