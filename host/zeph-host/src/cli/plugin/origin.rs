//! Where a plugin is added from: a file of this machine, a registry, or a server. What comes from elsewhere is fetched, and has the digest
//! that was asked for or declared before anything looks into it.

use std::path::{Path, PathBuf};

use zeph_artifact::package::{PackageError, PackageName};
use zeph_artifact::pulled::Pulled;
use zeph_artifact::reference::ArtifactSource;
use zeph_config::Config;
use zeph_core::id::Digest;
use zeph_engine::ComponentBytes;
use zeph_plugins::manage::ManageError;
use zeph_plugins::manage::source::{self, ComponentSource};

use super::registry;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::out;

/// What was named on the command line.
#[derive(Debug)]
pub(super) enum Origin {
    /// A component on this machine.
    File(ComponentSource),
    /// One elsewhere.
    Remote(ArtifactSource),
    /// One that wkg knows where to find.
    Package(PackageName),
}

/// A component, with what is known of where it comes from.
pub(super) struct Delivery {
    /// What messages call it, and what it is named after.
    pub(super) source: ComponentSource,
    pub(super) bytes: ComponentBytes,
    /// What was fetched; none for a file.
    pub(super) pulled: Option<Pulled>,
}

impl Origin {
    /// What is meant by `typed`. A reference is never a file that happens to have its name.
    ///
    /// Errors: a reference that is none, a file that is not there.
    pub(super) fn of(context: &Context, typed: &Path) -> Result<Self, CliError> {
        let text = typed.to_string_lossy();
        if PackageName::looks_like_one(&text) {
            return Ok(Self::Package(text.parse()?));
        }
        match ArtifactSource::looks_like_one(&text) {
            true => Ok(Self::Remote(text.parse()?)),
            false => {
                let from = context.surroundings.working_directory.join(typed);
                if !from.exists() && PackageName::looks_like_one(&format!("{text}@")) {
                    let problem =
                        format!("`{text}` is neither a file nor a package with a version");
                    return Err(CliError::user(problem)
                        .hint(format!("`{text}@1.2.0` names a version of a package")));
                }
                Ok(Self::File(source::component(&from)?))
            }
        }
    }

    /// Its bytes, which have the digest `expected`.
    ///
    /// Errors: those of reading and fetching; `Digest` when it has another one.
    pub(super) async fn fetch(
        self,
        context: &Context,
        config: &Config,
        expected: Option<Digest>,
    ) -> Result<Delivery, CliError> {
        match self {
            Self::File(source) => of_file(source, expected),
            Self::Remote(from) => of_server(context, config, from, expected).await,
            Self::Package(package) => {
                let from = package_source(context, config, &package).await?;
                of_server(context, config, from, expected).await
            }
        }
    }
}

/// Where a package is, as wkg would find it.
///
/// Errors: nothing says where, and those of the registry that is asked.
pub(super) async fn package_source(
    context: &Context,
    config: &Config,
    package: &PackageName,
) -> Result<ArtifactSource, CliError> {
    let transfer = registry::Transfer::new(true);
    let registries = registry::registries(context, config, &transfer);
    let wkg = registry::wkg_file(context);
    let found = package.resolve(&registries, wkg.as_deref()).await;
    let reference = found.map_err(|error| match error {
        PackageError::Registry(error) => error.into(),
        PackageError::Reference(error) => error.into(),
        error => CliError::user(error.to_string())
            .hint("name its registry in `~/.config/wasm-pkg/config.toml`, or write the reference itself, `HOST/REPOSITORY:TAG`"),
    })?;
    Ok(ArtifactSource::Registry(reference))
}

fn of_file(source: ComponentSource, expected: Option<Digest>) -> Result<Delivery, CliError> {
    let bytes = super::add::read(&source.file)?;
    let found = zeph_engine::digest(&bytes);
    match expected.filter(|expected| *expected != found) {
        None => Ok(Delivery {
            source,
            bytes,
            pulled: None,
        }),
        Some(expected) => Err(ManageError::Bad {
            path: source.file,
            reason: format!("it has the digest {found}, not {expected}"),
        }
        .into()),
    }
}

async fn of_server(
    context: &Context,
    config: &Config,
    from: ArtifactSource,
    expected: Option<Digest>,
) -> Result<Delivery, CliError> {
    let transfer = registry::Transfer::new(context.quiet);
    let registries = registry::registries(context, config, &transfer);
    if !context.quiet {
        out::remark(&format!("fetching `{from}`"));
    }
    let pulled = registries.fetch(&from, expected).await;
    transfer.end();
    let mut pulled = pulled?;
    let bytes = pulled.component.read();
    let bytes = bytes
        .map_err(|error| CliError::internal("what was fetched cannot be read").because(error))?;
    let source = ComponentSource::fetched(PathBuf::from(from.to_string()), from.short_name());
    Ok(Delivery {
        source,
        bytes: bytes.into(),
        pulled: Some(pulled),
    })
}
