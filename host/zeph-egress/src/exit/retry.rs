//! A server of TLS 1.3 may ask for a second ClientHello (`HelloRetryRequest`). It is in the clear too, and is held against the target
//! like the first: else the first one could name the host that is allowed, and the second one another.
//!
//! Source: RFC 8446, sections 4.1.3 and 4.1.4.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::tunnel::READ_BYTES;

/// The random value by which a ServerHello is known to ask for another ClientHello.
const ASKS_AGAIN: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// Where that value stands: behind the heads of the record and of the message, and the version.
const RANDOM_AT: usize = 5 + 4 + 2;

const HANDSHAKE: u8 = 22;
const SERVER_HELLO: u8 = 2;
const CHANGE_CIPHER_SPEC: u8 = 20;
const APPLICATION_DATA: u8 = 23;

/// Most bytes that a client sends before its second ClientHello: data that the server will not read.
const SKIPPED_MAX: usize = 64 * 1024;

/// Passes on the first record of the server. Says whether it asks for another ClientHello.
///
/// Errors: one of the two is gone.
pub(super) async fn first_record<S, H>(client: &mut S, host: &mut H) -> io::Result<bool>
where
    S: AsyncWrite + Unpin,
    H: AsyncRead + Unpin,
{
    let mut seen = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    while !is_whole(&seen) {
        let n_bytes = host.read(&mut buffer).await?;
        if n_bytes == 0 {
            break;
        }
        seen.extend_from_slice(&buffer[..n_bytes]);
        client.write_all(&buffer[..n_bytes]).await?;
    }
    Ok(asks_again(&seen))
}

/// Whether the first record is all there, or is none of a handshake.
fn is_whole(seen: &[u8]) -> bool {
    match seen {
        [HANDSHAKE, _, _, high, low, rest @ ..] => {
            rest.len() >= usize::from(u16::from_be_bytes([*high, *low]))
        }
        [HANDSHAKE, ..] | [] => false,
        _ => true,
    }
}

fn asks_again(seen: &[u8]) -> bool {
    let is_hello = seen.first() == Some(&HANDSHAKE) && seen.get(5) == Some(&SERVER_HELLO);
    let random = seen.get(RANDOM_AT..RANDOM_AT + ASKS_AGAIN.len());
    is_hello && random == Some(&ASKS_AGAIN)
}

/// Reads what a client may send before its second ClientHello, record by record. Returns it with the first byte of what follows.
///
/// Errors: the client is gone, or goes on for too long.
pub(super) async fn before_hello<S: AsyncRead + Unpin>(client: &mut S) -> io::Result<Vec<u8>> {
    let mut seen = Vec::new();
    loop {
        let kind = client.read_u8().await?;
        seen.push(kind);
        if kind != CHANGE_CIPHER_SPEC && kind != APPLICATION_DATA {
            return Ok(seen);
        }
        let mut rest = [0; 4];
        client.read_exact(&mut rest).await?;
        let [_, _, high, low] = rest;
        let length = usize::from(u16::from_be_bytes([high, low]));
        seen.extend(rest);
        let start = seen.len();
        if start + length > SKIPPED_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        seen.resize(start + length, 0);
        client.read_exact(&mut seen[start..]).await?;
    }
}
