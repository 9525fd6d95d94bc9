//! Where the components of a lock come from: the registries, servers and files that it names, or a bundle. Only bytes with the digest that
//! is asked for are taken, with what was found of signatures beside them; what those come to is for `vouching`.

use std::fs::File;
use std::path::Path;

use zeph_artifact::bundle::{Bundle, BundledPlugin};
use zeph_artifact::pulled::Pulled;
use zeph_artifact::reference::{ArtifactSource, Reference};
use zeph_artifact::registry::Registries;
use zeph_artifact::trust::SignatureFiles;
use zeph_core::id::{Digest, PluginId};
use zeph_core::signer::SignaturePolicy;
use zeph_engine::ComponentBytes;
use zeph_plugins::lock::{LockedPlugin, PluginSource};
use zeph_plugins::signature::FoundSignatures;

use crate::cli::context::Context;
use crate::cli::error::CliError;

/// A component, and what was found of signatures.
#[derive(Debug)]
pub(super) struct Supplied {
    pub(super) bytes: ComponentBytes,
    pub(super) signatures: FoundSignatures,
}

/// Where components come from.
pub(super) enum Supply {
    /// What the lock names.
    Network(Box<Registries>),
    /// A bundle.
    Bundle(Box<Bundle>),
}

/// Opens a bundle.
///
/// Errors: a file that is not there, or is no bundle.
pub(super) fn bundle(context: &Context, file: &Path) -> Result<Bundle, CliError> {
    use std::os::unix::fs::OpenOptionsExt as _;

    let path = context.surroundings.working_directory.join(file);
    let unreadable = format!("`{}` cannot be read", file.display());
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let opened = File::options()
        .read(true)
        .custom_flags(nonblocking)
        .open(path);
    let opened = opened.map_err(|error| CliError::user(unreadable.clone()).because(error))?;
    Bundle::open(opened).map_err(|error| CliError::user(unreadable).because(error))
}

impl Supply {
    /// The component that the lock pins.
    ///
    /// Errors: nothing says where it comes from, it is not there, or it is another one.
    pub(super) async fn get(
        &self,
        locked: &LockedPlugin,
        policy: &SignaturePolicy,
    ) -> Result<Supplied, CliError> {
        match self {
            Self::Network(registries) => fetched(registries, locked, policy).await,
            Self::Bundle(bundle) => of_bundle(bundle, &locked.name, locked.pin.wasm),
        }
    }
}

async fn fetched(
    registries: &Registries,
    locked: &LockedPlugin,
    policy: &SignaturePolicy,
) -> Result<Supplied, CliError> {
    let wasm = locked.pin.wasm;
    let source = match locked.source() {
        Some(PluginSource::Registry {
            reference,
            manifest,
        }) => {
            let reference: Reference = reference.parse()?;
            ArtifactSource::Registry(reference.at(*manifest))
        }
        Some(PluginSource::Url { url }) => url.parse()?,
        Some(PluginSource::File { path }) => return of_file(path, wasm),
        None => return Err(no_source(&locked.name)),
    };
    let pulled = registries.fetch(&source, Some(wasm)).await?;
    of_pulled(pulled, policy)
}

/// What was fetched, with its signatures in the form in which they lie beside a component.
pub(super) fn of_pulled(
    mut pulled: Pulled,
    policy: &SignaturePolicy,
) -> Result<Supplied, CliError> {
    let signatures = beside(&pulled, policy);
    let bytes = pulled
        .component
        .read()
        .map_err(|error| CliError::internal("what was fetched cannot be read").because(error))?;
    Ok(Supplied {
        bytes: bytes.into(),
        signatures,
    })
}

/// What is to lie beside a component that was fetched.
pub(super) fn beside(pulled: &Pulled, policy: &SignaturePolicy) -> FoundSignatures {
    let files = SignatureFiles::found(&pulled.signatures);
    let manifest = pulled.manifest.as_ref();
    FoundSignatures {
        minisign: files.minisign_file(policy),
        bundles: files.bundles_file(policy),
        manifest: manifest.map(|manifest| manifest.bytes.to_vec()),
        unread: files.not_kept(),
    }
}

/// Where something was fetched from, as a lock pins it. A tag keeps saying which versions are meant; the digest says which one it was.
pub(super) fn source_of(pulled: &Pulled) -> PluginSource {
    match (&pulled.source, pulled.manifest_digest()) {
        (ArtifactSource::Registry(reference), Some(manifest)) => PluginSource::Registry {
            reference: reference.to_string(),
            manifest,
        },
        (other, _) => PluginSource::Url {
            url: other.to_string(),
        },
    }
}

/// A file of this machine, wherever it was named from.
pub(super) fn source_of_file(file: &Path) -> PluginSource {
    PluginSource::File {
        path: file.canonicalize().unwrap_or_else(|_| file.to_owned()),
    }
}

/// A file of this machine: whatever it is now, only the pinned bytes are taken.
pub(super) fn of_file(path: &Path, wasm: Digest) -> Result<Supplied, CliError> {
    let bytes = super::add::read(path)?;
    if zeph_engine::digest(&bytes) != wasm {
        let problem = format!("`{}` is not what the lock pins", path.display());
        return Err(CliError::internal(problem)
            .hint("`zeph-host plugin update NAME` shows what changed, and takes it over"));
    }
    let signatures = FoundSignatures::beside(path).map_err(CliError::internal)?;
    Ok(Supplied { bytes, signatures })
}

fn no_source(name: &PluginId) -> CliError {
    let problem = format!("the lock does not say where plugin `{name}` comes from");
    CliError::internal(problem).hint(format!(
        "put its file into the folder, or take it from a bundle with `--from FILE`; `zeph-host plugin add REF --name {name}` notes where it comes from, and \
         `zeph-host plugin remove {name}` takes it out of the lock"
    ))
}

fn of_bundle(bundle: &Bundle, name: &PluginId, wasm: Digest) -> Result<Supplied, CliError> {
    let mut plugins = bundle.plugins().iter();
    let found = plugins.find(|plugin| plugin.name == name.0 && plugin.component == wasm);
    let Some(plugin) = found else {
        return Err(CliError::internal(format!(
            "the bundle does not hold plugin `{name}` as the lock pins it"
        ))
        .hint(
            "`zeph-host plugin bundle FILE` on the machine with the newer lock makes one that does",
        ));
    };
    let BundledPlugin {
        component,
        minisign,
        sigstore,
        manifest,
        ..
    } = plugin;
    let part = |part: &Option<Digest>| part.map(|part| bundle.part(part)).transpose();
    let supplied = || {
        Ok(Supplied {
            bytes: bundle.part(*component)?.into(),
            signatures: FoundSignatures {
                minisign: part(minisign)?,
                bundles: part(sigstore)?,
                manifest: part(manifest)?,
                unread: Vec::new(),
            },
        })
    };
    supplied().map_err(|error: zeph_artifact::bundle::BundleError| {
        CliError::internal(format!("plugin `{name}` cannot be taken from the bundle"))
            .because(error)
    })
}
