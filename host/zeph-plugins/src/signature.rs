//! The signatures beside a component: where they lie, how they are read, and what they come to under the operator's policy.
//!
//! Nothing here checks a signature: [`SignatureCheck`] does, made by the program from its configuration. What is checked are digests of
//! the component and its definitions that were made from the very bytes that run, so that no file is read a second time.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use zeph_core::id::{Digest, PluginId};
use zeph_core::signer::{SignatureRefusal, SignatureVerdict, UnsignedRule};

use crate::definitions::manifest_digest;
use crate::folder::FileStamp;
use crate::lock::PluginSource;
use crate::set::VettedPlugin;

/// Most bytes of each file of signatures.
const FILE_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// A file that lies beside a component and is named after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureFile {
    /// `NAME.wasm.minisig`: signatures of minisign over the digest document.
    Minisign,
    /// `NAME.wasm.sigstore.json`: bundles of Sigstore, one behind the other, over the manifest.
    Bundles,
    /// `NAME.wasm.manifest.json`: the manifest that the component has in its registry, to the byte.
    Manifest,
}

impl SignatureFile {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Minisign, Self::Bundles, Self::Manifest];

    /// Where it lies.
    pub fn beside(self, component: &Path) -> PathBuf {
        let mut name = component.file_name().unwrap_or_default().to_owned();
        name.push(match self {
            Self::Minisign => ".minisig",
            Self::Bundles => ".sigstore.json",
            Self::Manifest => ".manifest.json",
        });
        component.with_file_name(name)
    }
}

/// The contents of the files beside a component; none where there is no file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundSignatures {
    /// Signatures of minisign.
    pub minisign: Option<Vec<u8>>,
    /// Bundles of Sigstore.
    pub bundles: Option<Vec<u8>>,
    /// The manifest of the registry.
    pub manifest: Option<Vec<u8>>,
    /// What was found of signatures and is not kept, because it is not read: `a legacy signature of cosign …`. For messages.
    pub unread: Vec<String>,
}

impl FoundSignatures {
    /// Reads what lies beside `component`. Blocks.
    ///
    /// Errors: one sentence; a file that cannot be read is not the same as none.
    /// Limits: each file has at most 2 MiB.
    pub fn beside(component: &Path) -> Result<Self, String> {
        let file = |file: SignatureFile| content(&file.beside(component));
        Ok(Self {
            minisign: file(SignatureFile::Minisign)?,
            bundles: file(SignatureFile::Bundles)?,
            manifest: file(SignatureFile::Manifest)?,
            unread: Vec::new(),
        })
    }

    /// The content of one of them.
    pub fn get(&self, file: SignatureFile) -> Option<&[u8]> {
        match file {
            SignatureFile::Minisign => self.minisign.as_deref(),
            SignatureFile::Bundles => self.bundles.as_deref(),
            SignatureFile::Manifest => self.manifest.as_deref(),
        }
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.minisign.is_none() && self.bundles.is_none()
    }
}

/// What changes when the signatures of a component do.
pub(crate) fn stamps(component: &Path) -> [Option<FileStamp>; 3] {
    SignatureFile::ALL.map(|file| FileStamp::at(&file.beside(component)))
}

/// The whole file; none when there is no file. What lies there is opened once.
fn content(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let cannot = |error: io::Error| format!("`{}` cannot be read: {error}", path.display());
    // A pipe in its place must not be waited on.
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(cannot)?,
    };
    if !file.metadata().map_err(cannot)?.is_file() {
        return Err(format!("`{}` is not a regular file", path.display()));
    }
    let mut bytes = Vec::new();
    let mut bounded = file.take(FILE_BYTES_MAX + 1);
    bounded.read_to_end(&mut bytes).map_err(cannot)?;
    match bytes.len() as u64 > FILE_BYTES_MAX {
        true => Err(format!(
            "`{}` has more than {FILE_BYTES_MAX} bytes",
            path.display()
        )),
        false => Ok(Some(bytes)),
    }
}

/// The plugin that signatures have to vouch for.
#[derive(Debug, Clone)]
pub struct SignedPlugin {
    /// Where it comes from, without tag and digest: `ghcr.io/org/name`, a URL, or `file:NAME` for one that was put into the folder.
    pub reference: String,
    /// What it is called there: the last part of the repository or of the URL without `.wasm`, or its own name.
    pub published_as: String,
    /// Of the component.
    pub component: Digest,
    /// Of what its author's manifest requests.
    pub manifest: Digest,
    /// Of its definitions, as its author made them.
    pub definitions: Digest,
    /// The version that the component says it is.
    pub version: Option<String>,
}

impl SignedPlugin {
    /// A file of this machine.
    pub fn local(name: &PluginId, good: &VettedPlugin) -> Self {
        Self::of(format!("file:{name}"), name.0.clone(), good)
    }

    /// What was had from `reference`, which has neither tag nor digest.
    pub fn published(reference: &str, good: &VettedPlugin) -> Self {
        let last = reference.rsplit('/').next().unwrap_or(reference);
        let last = last.split(['?', '#']).next().unwrap_or(last);
        let name = last.strip_suffix(".wasm").unwrap_or(last).to_owned();
        Self::of(reference.to_owned(), name, good)
    }

    /// What was had from `source`, as a lock pins it.
    pub fn of_source(name: &PluginId, source: Option<&PluginSource>, good: &VettedPlugin) -> Self {
        match source {
            None | Some(PluginSource::File { .. }) => Self::local(name, good),
            Some(source) => Self::published(&source.place(), good),
        }
    }

    /// Shape: `good` is as its author made it, without requests of the operator.
    fn of(reference: String, published_as: String, good: &VettedPlugin) -> Self {
        Self {
            reference,
            published_as,
            component: good.pin.wasm,
            manifest: manifest_digest(good),
            // Of the tools that are offered, wherever they were remembered.
            definitions: good.definitions().digest(),
            version: good.about.version.clone(),
        }
    }
}

/// Checks signatures under a policy. It must not block.
pub trait SignatureCheck: fmt::Debug + Send + Sync {
    /// What becomes of a plugin that no known signer signed.
    fn rule(&self) -> UnsignedRule;

    /// What the signatures of a plugin come to, at `now_ms` (Unix milliseconds).
    fn verdict(
        &self,
        plugin: &SignedPlugin,
        files: &FoundSignatures,
        now_ms: i64,
    ) -> SignatureVerdict;
}

/// Whether the operator agreed to a plugin that nobody signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// They did, or need not.
    Given,
    /// They did not.
    Missing,
    /// Its folder was typed for this run: its lock is not the operator's, who agrees by taking the plugin into a folder that is.
    Elsewhere,
}

/// What the signatures of a plugin came to, and what becomes of one without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedSignature {
    /// What they came to.
    pub verdict: SignatureVerdict,
    /// What the operator decided about those without.
    pub rule: UnsignedRule,
}

impl CheckedSignature {
    /// Reads the files beside `component` and has them checked. Blocks for the reading.
    pub fn of(
        check: &dyn SignatureCheck,
        plugin: &SignedPlugin,
        component: &Path,
        now_ms: i64,
    ) -> Self {
        let verdict = match FoundSignatures::beside(component) {
            Ok(files) => check.verdict(plugin, &files, now_ms),
            Err(problem) => SignatureVerdict::Refused(SignatureRefusal {
                problem,
                remedy: "make the file readable, or remove it".to_owned(),
            }),
        };
        Self {
            verdict,
            rule: check.rule(),
        }
    }

    /// Why the plugin `name` may not be used; `None` when it may.
    ///
    /// Shape: `agreement` says whether its operator agreed to exactly this one.
    pub fn refusal(&self, name: &PluginId, agreement: Agreement) -> Option<SignatureRefusal> {
        let command = match agreement {
            Agreement::Given => None,
            Agreement::Missing => Some(format!("`zeph-host plugin approve {name}`")),
            Agreement::Elsewhere => Some(
                "`zeph-host plugin add` with this file, into your own folder and without `--plugins`,"
                    .to_owned(),
            ),
        };
        self.verdict.refusal(self.rule, command.as_deref())
    }

    /// Whether nothing but its operator's agreement is missing.
    pub fn is_for_operator(&self) -> bool {
        let is_unsigned = matches!(self.verdict, SignatureVerdict::Unsigned { .. });
        is_unsigned && self.rule == UnsignedRule::Ask
    }
}

#[cfg(test)]
mod tests;
