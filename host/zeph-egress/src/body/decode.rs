//! Content encodings. What comes out is counted while it comes out: a small body that decodes to a large one ends at the limit.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use async_compression::tokio::bufread::{
    BrotliDecoder, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder,
};
use async_compression::zstd::DParameter;
use bytes::{Buf as _, Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, HeaderMap};
use tokio::io::{AsyncBufRead, AsyncRead, ReadBuf};

use super::wire::{Wire, too_large};
use crate::error::EgressError;

/// What is said to a server about the encodings that are decoded. `deflate` is decoded and not asked for: it stands for two formats.
pub(crate) const ACCEPTED: &str = "gzip, br, zstd";

/// Bytes decoded at once.
const PIECE_BYTES: usize = 16 * 1024;

/// The largest window of zstd, as a power of two: what RFC 9659 lets servers use. A larger one would be memory that the sender chooses.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// An encoding that is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    /// The only encoding of a body; `None` when it has none.
    ///
    /// Errors: `Encoding` for another one, and for more than one.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Option<Self>, EgressError> {
        let values = headers.get_all(CONTENT_ENCODING).iter();
        let texts: Vec<_> = values
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        let named = texts.join(",").to_ascii_lowercase();
        let codings = named.split(',').map(str::trim);
        let codings: Vec<&str> = codings
            .filter(|it| !matches!(*it, "" | "identity"))
            .collect();
        match codings.as_slice() {
            [] => Ok(None),
            ["gzip" | "x-gzip"] => Ok(Some(Self::Gzip)),
            ["deflate"] => Ok(Some(Self::Deflate)),
            ["br"] => Ok(Some(Self::Brotli)),
            ["zstd"] => Ok(Some(Self::Zstd)),
            others => {
                let shown = zeph_core::failure::one_line(&others.join(", "), 60);
                Err(EgressError::Encoding(shown))
            }
        }
    }
}

/// A body without its encoding.
pub(super) struct Decoded {
    decoder: Box<dyn AsyncRead + Send + Unpin>,
    bytes: u64,
    limit: u64,
    is_over: bool,
}

impl Decoded {
    pub(super) fn new(coding: Coding, wire: Wire) -> Self {
        let limit = wire.byte_limit();
        let reader = WireReader {
            wire,
            piece: Bytes::new(),
        };
        let decoder: Box<dyn AsyncRead + Send + Unpin> = match coding {
            Coding::Gzip => {
                let mut decoder = GzipDecoder::new(reader);
                decoder.multiple_members(true);
                Box::new(decoder)
            }
            Coding::Deflate => Box::new(Inflate::Begin(Some(reader))),
            Coding::Brotli => Box::new(BrotliDecoder::new(reader)),
            Coding::Zstd => {
                let window = [DParameter::window_log_max(ZSTD_WINDOW_LOG_MAX)];
                let mut decoder = ZstdDecoder::with_params(reader, &window);
                decoder.multiple_members(true);
                Box::new(decoder)
            }
        };
        Self {
            decoder,
            bytes: 0,
            limit,
            is_over: false,
        }
    }

    /// The next piece.
    ///
    /// Errors: `TooLarge`, `Decode`, and those of the connection; after one of them nothing comes.
    pub(super) fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, EgressError>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let mut piece = BytesMut::zeroed(PIECE_BYTES);
        let mut buffer = ReadBuf::new(&mut piece);
        let read = ready!(pin!(&mut *self.decoder).poll_read(context, &mut buffer));
        let n_bytes = buffer.filled().len();
        self.bytes += n_bytes as u64;
        let failed = match read {
            Err(error) => Some(unwrapped(error)),
            Ok(()) if self.bytes > self.limit => Some(too_large(self.limit)),
            Ok(()) => None,
        };
        self.is_over = n_bytes == 0 || failed.is_some();
        if let Some(error) = failed {
            return Poll::Ready(Some(Err(error)));
        }
        if self.is_over {
            return Poll::Ready(None);
        }
        piece.truncate(n_bytes);
        Poll::Ready(Some(Ok(piece.freeze())))
    }
}

/// The error of the connection, where the decoder only passed it on.
fn unwrapped(error: io::Error) -> EgressError {
    match error.downcast::<EgressError>() {
        Ok(error) => error,
        Err(error) => EgressError::Decode(error),
    }
}

/// What servers call `deflate`: the zlib format, as the standard says, or the bare data that some send.
///
/// Source: RFC 9110, section 8.4.1.2, with its note; RFC 1950, section 2.2, for the first byte.
enum Inflate {
    /// The first byte has not come.
    Begin(Option<WireReader>),
    Zlib(ZlibDecoder<WireReader>),
    Bare(DeflateDecoder<WireReader>),
}

impl AsyncRead for Inflate {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Self::Begin(reader) = &mut *self {
            let first = match reader {
                Some(reader) => ready!(Pin::new(reader).poll_fill_buf(context))?
                    .first()
                    .copied(),
                None => None,
            };
            let Some(reader) = reader.take() else {
                return Poll::Ready(Ok(()));
            };
            // The method is 8, and a window larger than 32 KiB is not allowed. Bare data would begin so only with padding that is not zero.
            let is_zlib = first.is_none_or(|byte| byte & 0x8f == 0x08);
            *self = match is_zlib {
                true => Self::Zlib(ZlibDecoder::new(reader)),
                false => Self::Bare(DeflateDecoder::new(reader)),
            };
        }
        match &mut *self {
            Self::Begin(_) => Poll::Ready(Ok(())),
            Self::Zlib(decoder) => Pin::new(decoder).poll_read(context, buffer),
            Self::Bare(decoder) => Pin::new(decoder).poll_read(context, buffer),
        }
    }
}

/// A body as something to read.
struct WireReader {
    wire: Wire,
    piece: Bytes,
}

impl AsyncBufRead for WireReader {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let reader = self.get_mut();
        while reader.piece.is_empty() {
            match ready!(reader.wire.poll_frame(context)) {
                None => break,
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                // Trailers are not part of what was encoded.
                Some(Ok(frame)) => reader.piece = frame.into_data().unwrap_or_default(),
            }
        }
        Poll::Ready(Ok(&reader.piece))
    }

    fn consume(mut self: Pin<&mut Self>, n_bytes: usize) {
        self.piece.advance(n_bytes);
    }
}

impl AsyncRead for WireReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let piece = ready!(self.as_mut().poll_fill_buf(context))?;
        let n_bytes = piece.len().min(buffer.remaining());
        buffer.put_slice(&piece[..n_bytes]);
        self.consume(n_bytes);
        Poll::Ready(Ok(()))
    }
}
