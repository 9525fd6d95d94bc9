//! `zeph-host plugin verify`: says who signed a plugin, and whether the configuration accepts that.

use std::path::{Path, PathBuf};

use semver::Version;
use serde_json::{Value, json};
use zeph_artifact::reference::{ArtifactSource, Reference};
use zeph_config::Config;
use zeph_core::failure::one_line;
use zeph_core::id::PluginId;
use zeph_core::signer::{SignaturePolicy, SignatureVerdict, Signer, SignerKey};
use zeph_plugins::lock::{PluginSource, version_of_tag};
use zeph_plugins::manage::names::{self, KnownPlugin};
use zeph_plugins::manage::{ManageError, source};
use zeph_plugins::signature::{CheckedSignature, SignedPlugin};

use super::display::{self, Page};
use super::origin::{Origin, package_source};
use super::sign::Specimen;
use super::{sign, supply, vouching};
use crate::cli::args::PluginVerify;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::time;
use crate::clock::now_ms;
use crate::signatures::Signatures;

/// What keys that were typed are called.
const TYPED: &str = "--key";

/// Bytes of a file with a public key.
const KEY_FILE_BYTES_MAX: u64 = 4096;

/// Runs the command.
pub(super) fn run(context: &Context, options: &PluginVerify) -> Result<Exit, CliError> {
    let config = context.config()?;
    let policy = policy(context, &config, &options.key)?;
    let from = match installed_name(context, &options.from) {
        Some(name) => file_of(context, &config, name)?,
        None => options.from.clone(),
    };
    let source = match Origin::of(context, &from)? {
        Origin::File(source) => source,
        Origin::Remote(from) => return published(context, &config, (policy, from), options),
        Origin::Package(package) => {
            let from = package_source(context, &config, &package);
            let from = context::block_on(from)?;
            return published(context, &config, (policy, from), options);
        }
    };
    let specimen = sign::specimen(context, source)?;
    let installed = installed_from(&config, &specimen);
    let plugin = SignedPlugin::of_source(&specimen.name, installed.as_ref(), &specimen.good);
    let check = Signatures::under(policy);
    let checked = CheckedSignature::of(&*check, &plugin, &specimen.file, now_ms());
    let tagged = installed.as_ref().and_then(PluginSource::tagged_version);
    report(&plugin, &checked, tagged.as_ref(), options)
}

/// The name of an installed plugin, when nothing else was typed: a file that is there goes first.
fn installed_name<'a>(context: &Context, typed: &'a Path) -> Option<&'a str> {
    let name = typed
        .to_str()
        .filter(|name| PluginId::problem(name).is_none())?;
    let file = context.surroundings.working_directory.join(typed);
    (!file.exists()).then_some(name)
}

/// The file of the plugin of this name.
///
/// Errors: there is none of that name, or its file is gone.
fn file_of(context: &Context, config: &Config, name: &str) -> Result<PathBuf, CliError> {
    let known = names::known(&config.plugins.typed_first())?;
    let plugin = names::find(&known, name, &context.first_party())?;
    plugin.file.clone().ok_or_else(|| {
        CliError::user(format!("the file of plugin `{name}` is gone"))
            .hint("`zeph-host plugin sync` restores the files that `zeph.lock` pins")
    })
}

/// Where an installed plugin comes from, by its lock; none for any other file, and for one whose lock is of another component.
fn installed_from(config: &Config, specimen: &Specimen) -> Option<PluginSource> {
    let file = specimen.file.canonicalize().ok()?;
    let known = names::known(&config.plugins.typed_first()).ok()?;
    let is_it = |known: &&KnownPlugin| {
        let at = known.file.as_ref().and_then(|at| at.canonicalize().ok());
        at.as_ref() == Some(&file)
    };
    let locked = known.iter().find(is_it)?.locked.as_ref()?;
    let provenance = locked.provenance_of(specimen.good.pin.wasm)?;
    Some(provenance.source)
}

/// The same for what is in a registry or on a server.
fn published(
    context: &Context,
    config: &Config,
    (policy, from): (SignaturePolicy, ArtifactSource),
    options: &PluginVerify,
) -> Result<Exit, CliError> {
    let reference = from
        .reference()
        .map_or_else(|| from.to_string(), Reference::name);
    let tagged = from
        .reference()
        .and_then(Reference::tag)
        .and_then(version_of_tag);
    let origin = Origin::Remote(from);
    let delivery = context::block_on(origin.fetch(context, config, options.sha256))?;
    let name = source::name(None, &delivery.source, &[])?;
    let good = sign::tried(context, &name, &delivery.source.file, delivery.bytes)?;
    let plugin = SignedPlugin::published(&reference, &good);
    let pulled = delivery.pulled.as_ref();
    let files = pulled.map(|pulled| supply::beside(pulled, &policy));
    let rule = policy.unsigned;
    let check = Signatures::under(policy);
    let verdict = check.verdict(&plugin, &files.unwrap_or_default(), now_ms());
    let checked = CheckedSignature { verdict, rule };
    report(&plugin, &checked, tagged.as_ref(), options)
}

/// Prints what was found out, and says it as an exit code. `tagged` is the version that its tag is.
fn report(
    plugin: &SignedPlugin,
    checked: &CheckedSignature,
    tagged: Option<&Version>,
    options: &PluginVerify,
) -> Result<Exit, CliError> {
    let by = checked.verdict.signed_by();
    let signed = by.and_then(|by| vouching::signed_version(by, plugin.version.as_deref()));
    let both = tagged.zip(signed.as_ref());
    let mistagged = both.and_then(|(tagged, signed)| vouching::mistagged(tagged, signed));
    match options.json.json {
        true => {
            let mut members = display::members(signature_json(checked));
            members.insert("reference".to_owned(), json!(plugin.reference));
            members.insert("component".to_owned(), json!(plugin.component));
            members.insert("mistagged".to_owned(), json!(mistagged));
            display::print_json(&Value::Object(members))
        }
        false => page(plugin, checked)
            .field("tag", mistagged.as_deref())
            .print(),
    }?;
    Ok(match by {
        Some(_) => Exit::Success,
        None => Exit::Failure,
    })
}

/// The signers of the configuration, or those that were typed in their place.
fn policy(
    context: &Context,
    config: &Config,
    keys: &[String],
) -> Result<SignaturePolicy, CliError> {
    if keys.is_empty() {
        return Ok(config.plugins.signatures.clone());
    }
    let everything = "*"
        .parse()
        .map_err(|_| CliError::internal("no pattern is valid"))?;
    let offers = vec![everything];
    let signer = |text: &String| {
        Ok(Signer {
            name: TYPED.to_owned(),
            key: key(&context.surroundings.working_directory, text)?,
            offers: offers.clone(),
            expires_at_ms: None,
            is_revoked: false,
        })
    };
    let signers: Result<Vec<Signer>, CliError> = keys.iter().map(signer).collect();
    Ok(SignaturePolicy {
        signers: signers?,
        ..config.plugins.signatures.clone()
    })
}

/// A public key: the line itself, or a file with it.
fn key(here: &Path, text: &str) -> Result<SignerKey, CliError> {
    if let Ok(key) = text.parse() {
        return Ok(key);
    }
    let file = here.join(text);
    let content = bounded(&file).map_err(|source| ManageError::Read {
        path: file.clone(),
        source,
    })?;
    content
        .parse()
        .map_err(|error: zeph_core::signer::BadSignerKey| {
            let problem = format!("`{}` is no public key: {error}", one_line(text, 200));
            CliError::user(problem)
        })
}

fn bounded(file: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    let opened = std::fs::File::open(file)?;
    opened.take(KEY_FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

fn page(plugin: &SignedPlugin, checked: &CheckedSignature) -> Page {
    let mut page = Page::new();
    page.field("reference", Some(&plugin.reference))
        .field("component", Some(&plugin.component.to_string()))
        .field("signed by", Some(&signature_text(checked)));
    match &checked.verdict {
        SignatureVerdict::Signed(by) => {
            page.field("version", by.version.as_deref());
            page.field("signed", by.signed_at_ms.map(time::shown).as_deref());
            page.field("expires", by.expires_at_ms.map(time::shown).as_deref());
        }
        SignatureVerdict::Unsigned { passed_over } => {
            page.field("to mend it", Some(to_sign(passed_over)));
        }
        SignatureVerdict::Refused(refusal) => {
            page.field("to accept", Some(&refusal.remedy));
        }
    }
    page
}

/// What helps a plugin without a signature of a known signer.
fn to_sign(passed_over: &[String]) -> &'static str {
    match passed_over {
        [] => {
            "its author signs it with `zeph-host plugin sign`; the signature goes beside the file, with the ending `.minisig`"
        }
        _ => {
            "name its signer in `[[plugins.trust.signers]]`, or give the public key with `--key` to try it"
        }
    }
}

/// Who signed a plugin, in words.
pub(super) fn signature_text(checked: &CheckedSignature) -> String {
    match &checked.verdict {
        SignatureVerdict::Signed(by) => format!("{} ({})", by.signer, by.key),
        SignatureVerdict::Unsigned { passed_over } if passed_over.is_empty() => "nobody".to_owned(),
        SignatureVerdict::Unsigned { passed_over } => {
            format!("nobody who is known; it has {}", passed_over.join(", and "))
        }
        SignatureVerdict::Refused(refusal) => format!("nobody: {}", refusal.problem),
    }
}

/// `{"state": "signed" | "unsigned" | "refused", …}`
pub(super) fn signature_json(checked: &CheckedSignature) -> Value {
    match &checked.verdict {
        SignatureVerdict::Signed(by) => json!({
            "state": "signed",
            "signer": by.signer,
            "key": by.key,
            "version": by.version,
            "signed_at": by.signed_at_ms.map(time::shown),
            "expires_at": by.expires_at_ms.map(time::shown),
        }),
        SignatureVerdict::Unsigned { passed_over } => {
            json!({ "state": "unsigned", "passed_over": passed_over })
        }
        SignatureVerdict::Refused(refusal) => json!({
            "state": "refused",
            "reason": refusal.problem,
            "remedy": refusal.remedy,
        }),
    }
}
