//! The indexes of the configuration, and those of a bundle: fetched, checked with the keys of the operator, and remembered, so that an older
//! one shows.

mod earlier;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use semver::Version;
use url::Url;
use zeph_artifact::index::{
    ArtifactFacts, INDEX_BYTES_MAX, INDEX_SIGNATURE_BYTES_MAX, Index, IndexError, IndexMark,
    IndexTrust, KeyRotation,
};
use zeph_artifact::registry::Registries;
use zeph_artifact::trust::MINISIGN_SUFFIX;
use zeph_config::{Config, IndexLocation};
use zeph_core::signer::{Signer, SignerKey};
use zeph_plugins::lock::{LockedPlugin, PluginSource};
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

    /// Every index of the configuration that can be used; what is wrong with the others is said.
    pub(super) async fn usable(&self, context: &Context) -> Vec<OpenedIndex> {
        let (opened, problems) = self.all().await;
        let problems = problems.iter();
        problems.for_each(|problem| context.notes(&problem.problems));
        opened
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
        let signers = &self.config.plugins.signatures.signers;
        let seen = seen.map(|seen| earlier::with_keys(seen, signers, now_ms));
        let trust = self.trust(&source, seen.map(mark), now_ms);
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

    /// What the operator decided about the keys of this index.
    fn trust(&self, source: &str, mark: Option<IndexMark>, now_ms: i64) -> IndexTrust {
        let mut trust = IndexTrust {
            address: source.to_owned(),
            mark,
            ..IndexTrust::default()
        };
        let policy = &self.config.plugins.signatures;
        for signer in &policy.signers {
            let Signer { key, .. } = signer;
            if signer.is_revoked {
                trust.revoked.push(key.clone());
            }
            // The signature of an index is a file of minisign.
            if !matches!(key, SignerKey::Minisign { .. }) {
                continue;
            }
            let is_over = signer.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
            match policy.revoker(key) {
                None if !signer.offers(source) => {}
                None if is_over => trust.expired.push(key.clone()),
                None => trust.keys.push(key.clone()),
                Some(_) => {}
            }
        }
        trust
    }
}

/// Every index of the configuration that can be used, for a command that needs them for nothing else. Where there are none, nothing is
/// opened.
///
/// Errors: the store cannot be opened.
pub(super) async fn usable(
    context: &Context,
    config: &Config,
) -> Result<Vec<OpenedIndex>, CliError> {
    if config.plugins.indexes.is_empty() {
        return Ok(Vec::new());
    }
    let transfer = Transfer::new(context.quiet);
    let reader = IndexReader::new(context, config, &transfer)?;
    Ok(reader.usable(context).await)
}

/// Why the publisher of this artifact withdrew it, where one of these indexes says so.
pub(super) fn withdrawn(indexes: &[OpenedIndex], artifact: &ArtifactFacts) -> Option<String> {
    let mut indexes = indexes.iter();
    let reason = indexes.find_map(|opened| opened.index.withdrawn(artifact));
    reason.map(str::to_owned)
}

/// Why the publisher of a plugin that a lock pins withdrew it, where one of these indexes says so. `said` are versions that the lock does not
/// name, such as that of the component itself.
pub(super) fn yanked(
    indexes: &[OpenedIndex],
    plugin: &LockedPlugin,
    said: impl IntoIterator<Item = Version>,
) -> Option<String> {
    let source = plugin.source();
    let tagged = source.and_then(PluginSource::tagged_version);
    let named = plugin.version().cloned().into_iter().chain(tagged);
    let artifact = ArtifactFacts {
        place: source.map(PluginSource::place),
        versions: named.chain(said).collect(),
        manifest: match source {
            Some(PluginSource::Registry { manifest, .. }) => Some(*manifest),
            _ => None,
        },
        component: Some(plugin.pin.wasm),
    };
    withdrawn(indexes, &artifact)
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
    // Written from keys; one that cannot be read any more signs nothing.
    let keys = |lines: &[String]| -> Vec<SignerKey> {
        let keys = lines.iter().filter_map(|line| line.parse().ok());
        keys.collect()
    };
    let rotation = match keys(&seen.configured).split_first() {
        Some((root, configured)) => Some(KeyRotation {
            keys: keys(&seen.keys),
            root: root.clone(),
            configured: configured.to_vec(),
        }),
        None => None,
    };
    IndexMark {
        number: seen.number,
        document: seen.document,
        rotation,
    }
}

fn kept(source: &str, mark: &IndexMark) -> SeenIndex {
    let lines = |keys: &mut dyn Iterator<Item = &SignerKey>| keys.map(SignerKey::to_text).collect();
    let rotation = mark.rotation.as_ref();
    SeenIndex {
        source: source.to_owned(),
        number: mark.number,
        document: mark.document,
        keys: lines(&mut rotation.into_iter().flat_map(|rotation| &rotation.keys)),
        configured: lines(
            &mut rotation
                .into_iter()
                .flat_map(|rotation| std::iter::once(&rotation.root).chain(&rotation.configured)),
        ),
    }
}
