//! Source, version and signer of a plugin in a lock file.

use std::path::PathBuf;

use semver::Version;
use serde::Deserialize;
use toml::Spanned;
use zeph_core::id::Digest;

use super::{LockProblem, wrong};
use crate::lock::{NextVersion, PinnedSigner, PluginSource, Provenance};

/// Where a plugin was had from. Flat, so that what is wrong in it has a line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSource {
    reference: Option<String>,
    manifest: Option<Digest>,
    url: Option<String>,
    file: Option<PathBuf>,
}

/// What waits for its approval.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawNext {
    wasm: Digest,
    source: Spanned<RawSource>,
    version: Option<Spanned<String>>,
    signer: Option<Spanned<RawSigner>>,
}

/// Who signed it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSigner {
    name: String,
    key: String,
}

/// Without a source there is neither version nor signer.
pub(super) fn provenance(
    source: Option<Spanned<RawSource>>,
    version: Option<Spanned<String>>,
    signer: Option<Spanned<RawSigner>>,
) -> Result<Option<Provenance>, LockProblem> {
    let Some(source) = source else {
        let alone = version.as_ref().map(Spanned::span);
        let alone = alone.or(signer.as_ref().map(Spanned::span));
        return match alone {
            None => Ok(None),
            Some(span) => Err(LockProblem {
                span,
                problem: "a version or a signer belongs to a `source`".to_owned(),
            }),
        };
    };
    let version = version.map(|written| {
        let version = Version::parse(written.get_ref());
        version.map_err(|error| wrong(&written, format!("this is no semantic version: {error}")))
    });
    Ok(Some(Provenance {
        source: self::source(source)?,
        version: version.transpose()?,
        signer: signer.map(self::signer).transpose()?,
    }))
}

fn source(written: Spanned<RawSource>) -> Result<PluginSource, LockProblem> {
    let span = written.span();
    let RawSource {
        reference,
        manifest,
        url,
        file,
    } = written.into_inner();
    let source = match (reference, manifest, url, file) {
        (Some(reference), Some(manifest), None, None) => Ok(PluginSource::Registry {
            reference,
            manifest,
        }),
        (None, None, Some(url), None) => Ok(PluginSource::Url { url }),
        (None, None, None, Some(path)) => Ok(PluginSource::File { path }),
        _ => Err("a source is `reference` with `manifest`, `url`, or `file`".to_owned()),
    };
    let source = source.and_then(|source| source.check().map(|()| source));
    source.map_err(|problem| LockProblem { span, problem })
}

fn signer(written: Spanned<RawSigner>) -> Result<PinnedSigner, LockProblem> {
    let span = written.span();
    let RawSigner { name, key } = written.into_inner();
    let signer = PinnedSigner { name, key };
    match signer.check() {
        Ok(()) => Ok(signer),
        Err(problem) => Err(LockProblem { span, problem }),
    }
}

/// What waits for its approval.
pub(super) fn next(written: Spanned<RawNext>) -> Result<NextVersion, LockProblem> {
    let span = written.span();
    let RawNext {
        wasm,
        source,
        version,
        signer,
    } = written.into_inner();
    let provenance = provenance(Some(source), version, signer)?;
    let provenance = provenance.ok_or_else(|| LockProblem {
        span,
        problem: "the next version has no source".to_owned(),
    })?;
    Ok(NextVersion { wasm, provenance })
}
