//! What a command prints on its way to the terminal of an editor: frames over a socket, from the host that runs the command to the program
//! in the terminal.
//!
//! A frame is a letter (`o` standard output, `e` standard error, `x` the end), four bytes of length, lowest first, and as many bytes; of
//! an end one, the exit code.

use std::io::{self, Read, Write};

/// Bytes of one frame.
pub(super) const FRAME_BYTES_MAX: usize = 1 << 20;

/// The letters.
pub(super) const STDOUT: u8 = b'o';
pub(super) const STDERR: u8 = b'e';
pub(super) const END: u8 = b'x';

/// The head of a frame.
pub(super) fn head(letter: u8, n_bytes: usize) -> [u8; 5] {
    let length = u32::try_from(n_bytes).unwrap_or(u32::MAX).to_le_bytes();
    [letter, length[0], length[1], length[2], length[3]]
}

/// Shows what comes, until the end; the exit code.
///
/// Errors: the host is gone, or what comes is not from a host; the terminal cannot be written.
pub(crate) fn show(
    mut host: impl Read,
    mut stdout: impl Write,
    mut stderr: impl Write,
) -> io::Result<u8> {
    let mut bytes = Vec::new();
    loop {
        let mut head = [0; 5];
        host.read_exact(&mut head)?;
        let [letter, length @ ..] = head;
        let n_bytes = u32::from_le_bytes(length) as usize;
        if n_bytes > FRAME_BYTES_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a frame is too long",
            ));
        }
        bytes.resize(n_bytes, 0);
        host.read_exact(&mut bytes)?;
        match (letter, &bytes[..]) {
            (STDOUT, text) => stdout.write_all(text).and_then(|()| stdout.flush())?,
            (STDERR, text) => stderr.write_all(text).and_then(|()| stderr.flush())?,
            (END, [code]) => return Ok(*code),
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "an unknown frame",
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{END, FRAME_BYTES_MAX, STDERR, STDOUT, head, show};

    fn frames(frames: &[(u8, &[u8])]) -> Vec<u8> {
        let frames = frames.iter();
        frames
            .flat_map(|(letter, bytes)| [&head(*letter, bytes.len())[..], bytes].concat())
            .collect()
    }

    #[test]
    fn what_is_printed_and_the_end_arrive() {
        let sent = frames(&[
            (STDOUT, b"out"),
            (STDERR, b"err"),
            (STDOUT, b"!"),
            (END, &[7]),
        ]);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        assert_eq!(show(&sent[..], &mut out, &mut err).unwrap(), 7);
        assert_eq!((&out[..], &err[..]), (&b"out!"[..], &b"err"[..]));
    }

    #[test]
    fn what_is_cut_or_strange_is_an_error() {
        let cut = frames(&[(STDOUT, b"out")]);
        let strange = frames(&[(b'?', b"")]);
        let long = head(STDOUT, FRAME_BYTES_MAX + 1);
        for sent in [&cut[..], &cut[..6], &strange, &long] {
            assert!(show(sent, Vec::new(), Vec::new()).is_err());
        }
    }
}
