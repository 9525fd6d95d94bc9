//! The indexes of the configuration, and those of a bundle: fetched, checked with the keys of the operator, and remembered, so that an older
//! one shows.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use semver::Version;
use url::Url;
use zeph_artifact::index::{
    INDEX_BYTES_MAX, INDEX_SIGNATURE_BYTES_MAX, Index, IndexError, IndexMark, IndexTrust,
};
use zeph_artifact::registry::Registries;
use zeph_artifact::trust::MINISIGN_SUFFIX;
use zeph_config::{Config, IndexLocation};
use zeph_core::id::Digest;
use zeph_core::signer::SignerKey;
use zeph_plugins::lock::LockedPlugin;
use zeph_store::{SeenIndex, Store};

use super::registry::{self, Transfer};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::clock::now_ms;

/// An index that was checked.
#[derive(Debug)]
pub(super) struct OpenedIndex {
    /// As the configuration names it.
    pub(super) source: String,
    pub(super) index: Index,
    pub(super) document: Vec<u8>,
    pub(super) signature: Vec<u8>,
}

/// Opens indexes.
pub(super) struct IndexReader<'a> {
    pub(super) config: &'a Config,
    pub(super) registries: Registries,
    pub(super) store: Store,
}

impl<'a> IndexReader<'a> {
    /// What opens the indexes of this configuration; `transfer` shows what is fetched.
    ///
    /// Errors: the store cannot be opened.
    pub(super) fn new(
        context: &Context,
        config: &'a Config,
        transfer: &Transfer,
    ) -> Result<Self, CliError> {
        Ok(Self {
            config,
            registries: registry::registries(context, config, transfer),
            store: context.store(config)?,
        })
    }

    /// Every index of the configuration, and what is wrong with the others.
    pub(super) async fn all(&self) -> (Vec<OpenedIndex>, Vec<CliError>) {
        let (mut opened, mut problems) = (Vec::new(), Vec::new());
        for location in &self.config.plugins.indexes {
            match self.open(location).await {
                Ok(index) => opened.push(index),
                Err(error) => problems.push(error),
            }
        }
        (opened, problems)
    }

    async fn open(&self, location: &IndexLocation) -> Result<OpenedIndex, CliError> {
        let source = source(location);
        let unreadable = |error: CliError| CliError {
            problems: vec![format!(
                "the index `{source}` cannot be used: {}",
                error.problems.join("; ")
            )],
            ..error
        };
        let (document, signature) = match location {
            IndexLocation::Url(url) => self.fetched(url).await,
            IndexLocation::File(path) => of_file(path),
        }
        .map_err(unreadable)?;
        self.check(source.clone(), document, signature).await
    }

    async fn fetched(&self, url: &str) -> Result<(Vec<u8>, Vec<u8>), CliError> {
        let url = Url::parse(url)
            .map_err(|error| CliError::user("it has no valid URL").because(error))?;
        let mut signature = url.clone();
        signature.set_path(&format!("{}{MINISIGN_SUFFIX}", url.path()));
        let document = self.registries.file(&url, INDEX_BYTES_MAX).await?;
        let signature = self
            .registries
            .file(&signature, INDEX_SIGNATURE_BYTES_MAX)
            .await?;
        Ok((document.to_vec(), signature.to_vec()))
    }

    /// Checks an index and remembers it.
    ///
    /// Errors: nobody who may signed it, it is too old, or an older one than was seen before; the store.
    pub(super) async fn check(
        &self,
        source: String,
        document: Vec<u8>,
        signature: Vec<u8>,
    ) -> Result<OpenedIndex, CliError> {
        let now_ms = now_ms();
        let seen = self.store.seen_index(source.clone()).await?;
        let trust = IndexTrust {
            keys: self.keys(&source, now_ms),
            mark: seen.map(mark),
        };
        let (index, mark) = Index::open(&document, &signature, &trust, now_ms)
            .map_err(|error| refused(&source, &error))?;
        let kept = self.store.keep_seen_index(kept(&source, &mark), now_ms);
        if !kept.await? {
            // Another process saw a later one meanwhile.
            let seen = self.store.seen_index(source.clone()).await?;
            let seen = seen.map_or(mark.number, |seen| seen.number);
            let found = mark.number;
            return Err(refused(&source, &IndexError::RolledBack { found, seen }));
        }
        Ok(OpenedIndex {
            source,
            index,
            document,
            signature,
        })
    }

    /// The keys of the signers that may offer this index now.
    fn keys(&self, source: &str, now_ms: i64) -> Vec<SignerKey> {
        let signers = self.config.plugins.signatures.signers.iter();
        let offering = signers.filter(|signer| {
            let is_over = signer.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
            !signer.is_revoked && !is_over && signer.offers(source)
        });
        offering.map(|signer| signer.key.clone()).collect()
    }
}

/// Why the publisher of a plugin withdrew it, where one of these indexes says so of its component or of `version`.
pub(super) fn yanked(
    indexes: &[OpenedIndex],
    plugin: &LockedPlugin,
    version: Option<&Version>,
) -> Option<String> {
    let place = plugin.source()?.place();
    let mut listed = indexes
        .iter()
        .filter_map(|opened| opened.index.plugin_at(&place));
    let reason = listed.find_map(|listed| listed.yanked(version, plugin.pin.wasm));
    reason.map(str::to_owned)
}

/// A location as `offers` of a signer name it.
fn source(location: &IndexLocation) -> String {
    match location {
        IndexLocation::Url(url) => url.clone(),
        IndexLocation::File(path) => format!("file:{}", path.display()),
    }
}

fn of_file(path: &Path) -> Result<(Vec<u8>, Vec<u8>), CliError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(MINISIGN_SUFFIX);
    Ok((
        bounded(path, INDEX_BYTES_MAX)?,
        bounded(Path::new(&beside), INDEX_SIGNATURE_BYTES_MAX)?,
    ))
}

fn bounded(path: &Path, bytes_max: usize) -> Result<Vec<u8>, CliError> {
    use std::os::unix::fs::OpenOptionsExt as _;

    let cannot =
        |error| CliError::user(format!("`{}` cannot be read", path.display())).because(error);
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)
        .map_err(cannot)?;
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(cannot)?;
    match bytes.len() <= bytes_max {
        true => Ok(bytes),
        false => Err(CliError::user(format!(
            "`{}` has more than {bytes_max} bytes",
            path.display()
        ))),
    }
}

fn refused(source: &str, error: &IndexError) -> CliError {
    CliError::internal(format!("the index `{source}` is not used: {error}")).hint(error.hint())
}

fn mark(seen: SeenIndex) -> IndexMark {
    IndexMark {
        number: seen.number,
        document: seen.document,
        // Written from keys; one that cannot be read any more signs nothing.
        keys: seen
            .keys
            .iter()
            .filter_map(|key| key.parse().ok())
            .collect(),
        configured: seen.configured,
    }
}

fn kept(source: &str, mark: &IndexMark) -> SeenIndex {
    let document: Digest = mark.document;
    SeenIndex {
        source: source.to_owned(),
        number: mark.number,
        document,
        keys: mark.keys.iter().map(SignerKey::to_text).collect(),
        configured: mark.configured,
    }
}
