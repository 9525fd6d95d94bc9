//! `zeph-host plugin publish`: puts a component into a registry.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use zeph_artifact::manifest::{ComponentFacts, Publication};
use zeph_artifact::pulled::FoundSignature;
use zeph_artifact::reference::Reference;
use zeph_artifact::registry::SIGNATURE_TYPE;
use zeph_artifact::signature::comment::SignedFacts;
use zeph_artifact::signature::secret::SecretKey;
use zeph_artifact::trust::MINISIGN_TYPE;
use zeph_config::Config;
use zeph_engine::{Export, Import, Inspection, Metadata};
use zeph_plugins::manage::check::{self, Checked, Depth, ToolListing, Trial};
use zeph_plugins::manage::source::{self, ComponentSource};
use zeph_plugins::set::VettedPlugin;
use zeph_plugins::signature::SignedPlugin;

use super::display::{self, Page};
use super::registry::{self, Transfer};
use super::sign;
use crate::cli::args::PluginPublish;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;
use crate::clock::now_ms;
use crate::host::StartError;
use crate::signatures;

/// Runs the command.
pub(super) fn run(context: &Context, options: &PluginPublish) -> Result<Exit, CliError> {
    let config = context.config()?;
    let reference: Reference = options.reference.parse()?;
    let from = context.surroundings.working_directory.join(&options.file);
    let source = source::component(&from)?;
    // Asked for before anything is sent.
    let key = match &options.sign {
        None => None,
        Some(key) => {
            let key = sign::secret_key(&context.surroundings.working_directory.join(key))?;
            if key.is_none() {
                out::remark("nothing was published");
                return Ok(Exit::Failure);
            }
            key
        }
    };
    context::block_on(async {
        let bytes = super::add::read(&source.file)?;
        let component = Bytes::copy_from_slice(&bytes);
        let (inspection, good) = plugin(context, &config, &source).await?;
        let publication = Publication::new(component, &facts(&inspection));
        let publication = publication
            .map_err(|error| CliError::internal("the manifest cannot be written").because(error))?;
        let signature = key.as_ref().map(|key| signature(key, &good, &reference));
        let signature = signature.transpose()?;
        upload(context, &config, (&reference, &publication), signature).await?;
        let published = reference.at(publication.manifest.digest);
        match options.json.json {
            true => display::print_json(&json!({
                "reference": published,
                "manifest_digest": publication.manifest.digest,
                "digest": zeph_engine::digest(&bytes),
                "signed_with": key.map(|key| key.public().to_string()),
            })),
            false => Page::new()
                .line(0, &format!("published `{reference}`"))
                .line(1, &published.to_string())
                .print(),
        }?;
        Ok(Exit::Success)
    })
}

/// What the component is, once it was loaded as a plugin with nothing granted.
///
/// Errors: it cannot be used.
async fn plugin(
    context: &Context,
    config: &Config,
    source: &ComponentSource,
) -> Result<(Inspection, Arc<VettedPlugin>), CliError> {
    let trial = Trial {
        depth: Depth::Ask,
        limits: config.limits,
        cache_dir: config.engine.cache_dir.clone(),
        tell: super::progress(context),
    };
    let bytes = super::add::read(&source.file)?;
    let checked = check::check(source, bytes, trial).await;
    let checked = checked.map_err(StartError::Engine)?;
    match checked {
        Checked {
            inspection: Some(inspection),
            asked: ToolListing::Good(good),
            problems,
            ..
        } if problems.is_empty() => Ok((inspection, good)),
        Checked { problems, .. } => Err(refused(source, &problems)),
    }
}

fn refused(source: &ComponentSource, problems: &[String]) -> CliError {
    let file = display::path(&source.file);
    let why = problems
        .first()
        .map_or("it is no component", String::as_str);
    CliError::internal(format!(
        "`{}` is not a plugin, and was not published: {why}",
        source.file.display()
    ))
    .hint(format!("`zeph-host plugin check {file}` says more"))
}

/// The signature over what is published, under the name that it has in the registry.
fn signature(
    key: &SecretKey,
    good: &VettedPlugin,
    reference: &Reference,
) -> Result<FoundSignature, CliError> {
    let facts = SignedFacts {
        name: Some(reference.short_name().to_owned()),
        version: good.about.version.clone(),
        signed_at: Some(now_ms().div_euclid(1000)),
        expires_at: None,
    };
    let comment = facts
        .write()
        .map_err(|error| CliError::user(error.to_string()))?;
    let document = signatures::document(&SignedPlugin::published(&reference.name(), good));
    let signed = sign::signed(key, &document, &comment);
    Ok(FoundSignature {
        artifact_type: SIGNATURE_TYPE.to_owned(),
        media_type: MINISIGN_TYPE.to_owned(),
        bytes: signed.to_text().into(),
    })
}

async fn upload(
    context: &Context,
    config: &Config,
    (reference, publication): (&Reference, &Publication),
    signature: Option<FoundSignature>,
) -> Result<(), CliError> {
    let registries = registry::registries(context, config, &Transfer::new(context.quiet));
    if !context.quiet {
        let n_bytes = display::size(publication.component.len() as u64);
        out::remark(&format!("publishing {n_bytes} as `{reference}`"));
    }
    registries.publish(reference, publication).await?;
    if let Some(signature) = signature {
        let attached = registries.attach(reference, &publication.manifest, &signature);
        attached.await?;
    }
    Ok(())
}

/// What the component itself says: nothing of the machine, of the time or of the reference, so that the same file is the same artifact.
fn facts(inspection: &Inspection) -> ComponentFacts {
    let exports = inspection.exports.iter();
    let imports = inspection.imports.iter();
    ComponentFacts {
        author: inspection.metadata.authors.clone(),
        exports: exports
            .map(|Export { name, version, .. }| versioned(name, version.as_deref()))
            .collect(),
        imports: imports
            .map(|Import { name, version, .. }| versioned(name, version.as_deref()))
            .collect(),
        annotations: annotations(&inspection.metadata),
    }
}

fn versioned(name: &str, version: Option<&str>) -> String {
    match version {
        Some(version) => format!("{name}@{version}"),
        None => name.to_owned(),
    }
}

/// Under the names that OCI defines for images, as wkg writes them.
fn annotations(metadata: &Metadata) -> BTreeMap<String, String> {
    let said = [
        ("title", &metadata.name),
        ("version", &metadata.version),
        ("description", &metadata.description),
        ("authors", &metadata.authors),
        ("licenses", &metadata.licenses),
        ("url", &metadata.homepage),
        ("source", &metadata.source),
    ];
    let said = said
        .into_iter()
        .filter_map(|(name, text)| Some((name, text.clone()?)));
    said.map(|(name, text)| (format!("org.opencontainers.image.{name}"), text))
        .collect()
}
