//! `zeph-host plugin publish`: puts a component into a registry.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use zeph_artifact::document::DigestDocument;
use zeph_artifact::manifest::{ComponentFacts, Publication};
use zeph_artifact::pulled::FoundSignature;
use zeph_artifact::reference::Reference;
use zeph_artifact::registry::SIGNATURE_TYPE;
use zeph_artifact::signature::comment::SignedFacts;
use zeph_artifact::signature::minisign::MinisignSignature;
use zeph_artifact::signature::secret::SecretKey;
use zeph_artifact::trust::MINISIGN_TYPE;
use zeph_config::Config;
use zeph_core::signer::UnsignedRule;
use zeph_engine::{Export, Import, Inspection, Metadata};
use zeph_plugins::lock::version_of_tag;
use zeph_plugins::manage::check::{self, Checked, Depth, ToolListing, Trial};
use zeph_plugins::manage::source::{self, ComponentSource};
use zeph_plugins::set::VettedPlugin;
use zeph_plugins::signature::{FoundSignatures, SignedPlugin};

use super::display::{self, Page};
use super::registry::{self, Transfer};
use super::sign;
use crate::cli::args::PluginPublish;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::{out, time};
use crate::clock::now_ms;
use crate::host::StartError;
use crate::signatures::{self, Signatures};

/// Runs the command.
pub(super) fn run(context: &Context, options: &PluginPublish) -> Result<Exit, CliError> {
    let config = context.config()?;
    let reference: Reference = options.reference.parse()?;
    let from = context.surroundings.working_directory.join(&options.file);
    let source = source::component(&from)?;
    let expires = options.expires.as_ref();
    let expires = expires.map(|text| time::expiry(text, now_ms()));
    let expires = expires.transpose().map_err(CliError::user)?;
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
        let subject = (&*good, &reference, &source);
        let attached = attached(context, &config, subject, (key.as_ref(), expires))?;
        let signature = attached.as_ref().map(|attached| &attached.signature);
        upload(context, &config, (&reference, &publication), signature).await?;
        let published = reference.at(publication.manifest.digest);
        let attached = attached.as_ref();
        match options.json.json {
            true => display::print_json(&json!({
                "reference": published,
                "manifest_digest": publication.manifest.digest,
                "digest": zeph_engine::digest(&bytes),
                "signed_with": attached.map(|attached| &attached.key),
                "signature_expires": attached.and_then(AttachedSignature::expires),
            })),
            false => page(&reference, &published, attached).print(),
        }?;
        Ok(Exit::Success)
    })
}

fn page(
    reference: &Reference,
    published: &Reference,
    attached: Option<&AttachedSignature>,
) -> Page {
    let mut page = Page::new();
    page.line(0, &format!("published `{reference}`"))
        .line(1, &published.to_string());
    if let Some(attached) = attached {
        let until = attached.expires();
        let until = until.map(|until| format!(", until {until}"));
        let key = &attached.key;
        page.line(
            1,
            &format!("signed with {key}{}", until.unwrap_or_default()),
        );
    }
    page
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

/// That a tag which is a version is the one that the component says, since that one is signed.
///
/// Errors: they differ.
fn must_be_tagged_so(reference: &Reference, good: &VettedPlugin) -> Result<(), CliError> {
    let own = good.version();
    let tagged = reference.tag().and_then(version_of_tag);
    match (tagged, own) {
        (Some(tagged), Some(own)) if tagged.cmp_precedence(&own).is_ne() => Err(CliError::user(format!(
            "the tag is of version {tagged}, and the component says it is version {own}, which would be signed"
        ))
        .hint(format!(
            "publish it with the tag of version {own}, or build it as version {tagged}"
        ))),
        _ => Ok(()),
    }
}

/// A signature that goes with the artifact.
struct AttachedSignature {
    signature: FoundSignature,
    /// The key that made it.
    key: String,
    /// When it stops counting, in Unix seconds.
    expires_at: Option<i64>,
}

impl AttachedSignature {
    fn of(file: Vec<u8>, key: String, expires_at: Option<i64>) -> Self {
        let signature = FoundSignature {
            artifact_type: SIGNATURE_TYPE.to_owned(),
            media_type: MINISIGN_TYPE.to_owned(),
            bytes: file.into(),
        };
        Self {
            signature,
            key,
            expires_at,
        }
    }

    /// When the signature expires, as people read it.
    fn expires(&self) -> Option<String> {
        let at = self.expires_at?;
        Some(time::shown(at.saturating_mul(1000)))
    }
}

/// What is attached: a signature by the key, else what lies beside the file.
///
/// Shape: `expires` is in Unix milliseconds.
fn attached(
    context: &Context,
    config: &Config,
    (good, reference, source): (&VettedPlugin, &Reference, &ComponentSource),
    (key, expires): (Option<&SecretKey>, Option<i64>),
) -> Result<Option<AttachedSignature>, CliError> {
    let beside = FoundSignatures::beside(&source.file).map_err(CliError::user)?;
    let beside = beside.minisign;
    let Some(key) = key else {
        let accepted = beside.and_then(|file| accepted(context, config, (reference, good), file));
        if accepted.is_some() {
            must_be_tagged_so(reference, good)?;
        }
        return Ok(accepted);
    };
    must_be_tagged_so(reference, good)?;
    let document = signatures::document(&SignedPlugin::published(&reference.name(), good));
    let expires_at = match expires {
        Some(at_ms) => Some(at_ms.div_euclid(1000)),
        None => kept_expiry(key, beside.as_deref())?,
    };
    signature(key, (&document, good), reference, expires_at).map(Some)
}

/// The signature over what is published, under the name that it has in the registry.
fn signature(
    key: &SecretKey,
    (document, good): (&DigestDocument, &VettedPlugin),
    reference: &Reference,
    expires_at: Option<i64>,
) -> Result<AttachedSignature, CliError> {
    let facts = SignedFacts {
        name: Some(reference.short_name().to_owned()),
        version: good.about.version.clone(),
        signed_at: Some(now_ms().div_euclid(1000)),
        expires_at,
    };
    let comment = facts
        .write()
        .map_err(|error| CliError::user(error.to_string()))?;
    let signed = sign::signed(key, document, &comment);
    let file = signed.to_text().into_bytes();
    let key = key.public().to_string();
    Ok(AttachedSignature::of(file, key, expires_at))
}

/// When the signature that this key made before, beside the file, stops counting, in Unix seconds: of this build or of an earlier one.
///
/// Errors: it is past.
fn kept_expiry(key: &SecretKey, beside: Option<&[u8]>) -> Result<Option<i64>, CliError> {
    let Some(expires_at) = beside.and_then(|file| expiry(key, file)) else {
        return Ok(None);
    };
    match expires_at > now_ms().div_euclid(1000) {
        true => Ok(Some(expires_at)),
        false => Err(CliError::user(format!(
            "the signature beside the file expired on {}",
            time::shown(expires_at.saturating_mul(1000))
        ))
        .hint("`--expires` says until when the new one counts, such as `--expires 365d`")),
    }
}

fn expiry(key: &SecretKey, beside: &[u8]) -> Option<i64> {
    let public = key.public();
    let all = MinisignSignature::all(beside).ok()?;
    let mut own = all.iter().filter(|one| one.is_comment_of(&public));
    SignedFacts::read(&own.next()?.trusted_comment)
        .ok()?
        .expires_at
}

/// The signature file beside the component, if users with this configuration would accept it; else it is said that it stays behind.
fn accepted(
    context: &Context,
    config: &Config,
    (reference, good): (&Reference, &VettedPlugin),
    file: Vec<u8>,
) -> Option<AttachedSignature> {
    let plugin = SignedPlugin::published(&reference.name(), good);
    let found = FoundSignatures {
        minisign: Some(file.clone()),
        ..FoundSignatures::default()
    };
    let check = Signatures::under(config.plugins.signatures.clone());
    let verdict = check.verdict(&plugin, &found, now_ms());
    if let Some(by) = verdict.signed_by() {
        let expires_at = by.expires_at_ms.map(|at_ms| at_ms.div_euclid(1000));
        return Some(AttachedSignature::of(file, by.key.clone(), expires_at));
    }
    let refusal = verdict.refusal(UnsignedRule::Refuse, None);
    let why = refusal.map_or_else(String::new, |refusal| format!(": {}", refusal.problem));
    context.notes(&[format!(
        "the signature beside the file was not published{why}; `--sign KEY` signs it"
    )]);
    None
}

async fn upload(
    context: &Context,
    config: &Config,
    (reference, publication): (&Reference, &Publication),
    signature: Option<&FoundSignature>,
) -> Result<(), CliError> {
    let registries = registry::registries(context, config, &Transfer::new(context.quiet));
    if !context.quiet {
        let n_bytes = display::size(publication.component.len() as u64);
        out::remark(&format!("publishing {n_bytes} as `{reference}`"));
    }
    registries.publish(reference, publication).await?;
    if let Some(signature) = signature {
        let attached = registries.attach(reference, &publication.manifest, signature);
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
