//! The journal of the system: entries in its native protocol, each one datagram to a socket of this machine.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

/// Where the journal listens.
pub const JOURNAL_SOCKET: &str = "/run/systemd/journal/socket";

/// How long an entry may wait for a journal that is busy.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Bytes of an entry at most: what fits into a datagram with the usual settings of a kernel.
const ENTRY_BYTES_MAX: usize = 64 * 1024;

/// Adds an entry to the journal that listens at `socket`.
///
/// Shape: names of fields are capital letters, digits and `_`; values are any text.
/// Errors: there is no journal, it does not take the entry within 2 s, a name is invalid, or the entry has more than 64 KiB.
pub fn send_to_journal(socket: &Path, fields: &[(&str, &str)]) -> io::Result<()> {
    let mut entry = Vec::new();
    for (name, value) in fields {
        put(&mut entry, name, value)?;
    }
    if entry.len() > ENTRY_BYTES_MAX {
        return Err(io::Error::other("the entry is too long for the journal"));
    }
    let sender = UnixDatagram::unbound()?;
    sender.set_write_timeout(Some(TIMEOUT))?;
    sender.send_to(&entry, socket).map(drop)
}

/// `NAME=VALUE` for a value of one line; else the name, the length as 64 bits, lowest byte first, and the value.
fn put(entry: &mut Vec<u8>, name: &str, value: &str) -> io::Result<()> {
    let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if name.is_empty() || !name.bytes().all(is_name) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    entry.extend_from_slice(name.as_bytes());
    match value.contains('\n') {
        false => entry.push(b'='),
        true => {
            entry.push(b'\n');
            entry.extend_from_slice(&(value.len() as u64).to_le_bytes());
        }
    }
    entry.extend_from_slice(value.as_bytes());
    entry.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::send_to_journal;

    #[test]
    fn an_entry_is_one_datagram_of_fields() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let journal = UnixDatagram::bind(&path).unwrap();
        send_to_journal(&path, &[("MESSAGE", "a=b"), ("LONG", "a\nb")]).unwrap();
        let mut entry = [0; 256];
        let n = journal.recv(&mut entry).unwrap();
        let expected = b"MESSAGE=a=b\nLONG\n\x03\0\0\0\0\0\0\0a\nb\n";
        assert_eq!(&entry[..n], expected);
    }

    #[test]
    fn what_the_journal_would_not_take_is_not_sent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        assert!(send_to_journal(&path, &[("MESSAGE", "x")]).is_err());
        let _journal = UnixDatagram::bind(&path).unwrap();
        for (name, value) in [
            ("", "x"),
            ("small", "x"),
            ("A=B", "x"),
            ("A", &"x".repeat(70_000)),
        ] {
            assert!(send_to_journal(&path, &[(name, value)]).is_err(), "{name}");
        }
    }
}
