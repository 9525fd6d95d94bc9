//! SOCKS 5, the part of it that a way out by name needs: a name and a password, and `CONNECT` to a host by its name.
//!
//! Source: RFC 1928, RFC 1929.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The first byte of everything a client sends.
pub(super) const VERSION: u8 = 5;

const WITH_PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const BY_NAME: u8 = 3;

/// What a client is told of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Reply {
    /// It may send.
    Granted = 0,
    /// No rule allows it.
    NotAllowed = 2,
    /// Only `CONNECT` is there.
    NoSuchCommand = 7,
    /// Only names are taken.
    NoSuchAddress = 8,
}

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SocksRequest {
    /// A connection to `host:port`.
    Connect(String),
    /// A connection to an address.
    ByAddress,
    /// Something else.
    OtherCommand,
    /// It has no password, or the wrong one.
    Stranger,
}

/// Reads the greeting, the password and the request. What is answered to the request is left to the caller.
///
/// Errors: the client is gone, or speaks something else.
pub(super) async fn read<S>(stream: &mut S, user: &str, token: &str) -> io::Result<SocksRequest>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    expect(stream, VERSION).await?;
    let methods = short_list(stream).await?;
    if !methods.contains(&WITH_PASSWORD) {
        stream.write_all(&[VERSION, NO_METHOD]).await?;
        return Ok(SocksRequest::Stranger);
    }
    stream.write_all(&[VERSION, WITH_PASSWORD]).await?;
    expect(stream, 1).await?;
    let (given, password) = (short_list(stream).await?, short_list(stream).await?);
    let is_known = given == user.as_bytes() && password == token.as_bytes();
    stream.write_all(&[1, u8::from(!is_known)]).await?;
    if !is_known {
        return Ok(SocksRequest::Stranger);
    }
    request(stream).await
}

async fn request<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<SocksRequest> {
    expect(stream, VERSION).await?;
    let command = stream.read_u8().await?;
    expect(stream, 0).await?;
    let kind = stream.read_u8().await?;
    if command != CONNECT {
        return Ok(SocksRequest::OtherCommand);
    }
    if kind != BY_NAME {
        return Ok(SocksRequest::ByAddress);
    }
    let name = short_list(stream).await?;
    let port = stream.read_u16().await?;
    let name = String::from_utf8(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok(SocksRequest::Connect(format!("{name}:{port}")))
}

/// Answers a request.
///
/// Errors: the client is gone.
pub(super) async fn answer<S: AsyncWrite + Unpin>(stream: &mut S, reply: Reply) -> io::Result<()> {
    // Where the connection begins is nobody's business: an address of zeros.
    let nowhere = [0, 1, 0, 0, 0, 0, 0, 0];
    let bytes = [&[VERSION, reply as u8], &nowhere[..]].concat();
    stream.write_all(&bytes).await
}

async fn expect<S: AsyncRead + Unpin>(stream: &mut S, byte: u8) -> io::Result<()> {
    match stream.read_u8().await? == byte {
        true => Ok(()),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

async fn short_list<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; stream.read_u8().await?.into()];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}
