//! Bytes of a declared size and digest. What arrives is counted and hashed while it arrives, and nobody sees it before both are right.

use std::fs::File;
use std::io::Write as _;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use sha2::{Digest as _, Sha256};
use zeph_core::id::Digest;
use zeph_egress::{OwnAnswer, OwnError};

use super::session::Session;
use super::{Progress, RegistryError, Report, error};
use crate::manifest::Descriptor;
use crate::pulled::Blob;

/// Bytes between two reports.
const REPORT_BYTES: u64 = 256 * 1024;

/// What bytes have to be.
pub(super) struct Expected {
    /// What they are called in messages.
    pub(super) what: &'static str,
    pub(super) digest: Digest,
    pub(super) n_bytes: Option<u64>,
    pub(super) bytes_max: u64,
}

impl Expected {
    /// As declared.
    ///
    /// Errors: `TooLarge`: nothing is asked for.
    pub(super) fn of(
        what: &'static str,
        declared: &Descriptor,
        bytes_max: u64,
        key: Option<&'static str>,
    ) -> Result<Self, RegistryError> {
        match declared.size > bytes_max {
            true => Err(RegistryError::TooLarge {
                what: what.to_owned(),
                limit: bytes_max,
                key,
            }),
            false => Ok(Self {
                what,
                digest: declared.digest,
                n_bytes: Some(declared.size),
                bytes_max,
            }),
        }
    }

    fn check_size(&self, found: u64) -> Result<(), RegistryError> {
        match self.n_bytes {
            Some(declared) if declared != found => Err(RegistryError::Size {
                what: self.what,
                declared,
                found,
            }),
            None if found > self.bytes_max => Err(self.too_large()),
            _ => Ok(()),
        }
    }

    fn too_large(&self) -> RegistryError {
        RegistryError::TooLarge {
            what: self.what.to_owned(),
            limit: self.bytes_max,
            key: Some("plugins.download_bytes_max"),
        }
    }

    fn check_digest(&self, found: Digest) -> Result<(), RegistryError> {
        match found == self.digest {
            true => Ok(()),
            false => Err(RegistryError::Digest {
                what: self.what,
                expected: self.digest,
                found,
            }),
        }
    }

    /// The error of a body that broke off.
    fn broken(&self, error: OwnError, found: u64) -> RegistryError {
        match error {
            OwnError::Protocol(_) => RegistryError::Truncated {
                what: self.what,
                declared: self.n_bytes,
                found,
            },
            OwnError::TooLarge(_) => self.too_large(),
            error => RegistryError::of(error),
        }
    }
}

/// Fetches a small blob into memory.
pub(super) async fn small(
    session: &Session<'_>,
    what: &'static str,
    declared: &Descriptor,
    bytes_max: usize,
) -> Result<Bytes, RegistryError> {
    let expected = Expected::of(what, declared, bytes_max as u64, None)?;
    let mut bytes = Vec::new();
    let answer = asked(session, declared).await?;
    stream(answer, &expected, None, |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    })
    .await?;
    Ok(bytes.into())
}

/// Fetches a component into a temporary file.
pub(super) async fn component(
    session: &Session<'_>,
    declared: &Descriptor,
) -> Result<Blob, RegistryError> {
    let bytes_max = session.registries.settings.bytes_max;
    let key = Some("plugins.download_bytes_max");
    let expected = Expected::of("the component", declared, bytes_max, key)?;
    let answer = asked(session, declared).await?;
    file(answer, &expected, &session.registries.report).await
}

async fn asked(session: &Session<'_>, declared: &Descriptor) -> Result<OwnAnswer, RegistryError> {
    let asked = session.get(&format!("blobs/{}", declared.digest));
    let answer = session.send(&asked).await?;
    error::success(answer, &asked.told()).await
}

/// Writes the body of an answer into a temporary file.
pub(super) async fn file(
    answer: OwnAnswer,
    expected: &Expected,
    report: &Report,
) -> Result<Blob, RegistryError> {
    let mut file = tempfile::tempfile()?;
    let write = |piece: &[u8]| file_write(&mut file, piece);
    let n_bytes = stream(answer, expected, Some(report), write).await?;
    Ok(Blob {
        file,
        digest: expected.digest,
        n_bytes,
    })
}

fn file_write(file: &mut File, piece: &[u8]) -> Result<(), RegistryError> {
    Ok(file.write_all(piece)?)
}

/// Hands the body of an answer on, piece by piece, and returns how many bytes it has. Only when this succeeds is any of it worth something.
async fn stream(
    mut answer: OwnAnswer,
    expected: &Expected,
    report: Option<&Report>,
    mut take: impl FnMut(&[u8]) -> Result<(), RegistryError>,
) -> Result<u64, RegistryError> {
    let announced = announced(&answer.headers);
    if let Some(announced) = announced {
        expected.check_size(announced)?;
    }
    let (mut hash, mut n_bytes, mut reported) = (Sha256::new(), 0, 0);
    loop {
        let piece = answer.body.next().await;
        let Some(piece) = piece.map_err(|error| expected.broken(error, n_bytes))? else {
            break;
        };
        n_bytes += piece.len() as u64;
        if expected.n_bytes.is_some_and(|declared| n_bytes > declared) {
            expected.check_size(n_bytes)?;
        }
        hash.update(&piece);
        take(&piece)?;
        if let Some(report) = report.filter(|_| n_bytes - reported >= REPORT_BYTES) {
            reported = n_bytes;
            let n_bytes_total = expected.n_bytes.or(announced);
            report(Progress {
                n_bytes,
                n_bytes_total,
            });
        }
    }
    if let Some(declared) = expected.n_bytes.filter(|declared| n_bytes < *declared) {
        return Err(RegistryError::Truncated {
            what: expected.what,
            declared: Some(declared),
            found: n_bytes,
        });
    }
    expected.check_size(n_bytes)?;
    expected.check_digest(Digest::new(hash.finalize().into()))?;
    Ok(n_bytes)
}

/// The length a server announces. A body that is decoded on its way has none.
fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
