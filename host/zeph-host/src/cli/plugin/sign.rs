//! `zeph-host plugin sign`: signs the digests of a component, its manifest and its tool definitions.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use zeph_artifact::document::DigestDocument;
use zeph_artifact::signature::comment::SignedFacts;
use zeph_artifact::signature::minisign::{MinisignSignature, SIGNATURES_MAX};
use zeph_artifact::signature::secret::{KEY_FILE_BYTES_MAX, PASSWORD_BYTES_MAX, SecretKey};
use zeph_core::id::PluginId;
use zeph_engine::ComponentBytes;
use zeph_plugins::manage::install::{self, InstallTarget};
use zeph_plugins::manage::source::{self, ComponentSource};
use zeph_plugins::manage::{ManageError, trial};
use zeph_plugins::set::VettedPlugin;
use zeph_plugins::signature::{FoundSignatures, SignatureFile, SignedPlugin};

use super::display::{self, Page};
use super::{add, check, keygen};
use crate::cli::args::PluginSign;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::{out, time};
use crate::clock::now_ms;
use crate::host::StartError;
use crate::signatures;

/// A component that was looked at, outside of any folder of plugins.
pub(super) struct Specimen {
    /// The component.
    pub(super) file: PathBuf,
    /// What it is called by its file.
    pub(super) name: PluginId,
    pub(super) good: Arc<VettedPlugin>,
}

/// Runs the command.
pub(super) fn run(context: &Context, options: &PluginSign) -> Result<Exit, CliError> {
    let from = context.surroundings.working_directory.join(&options.file);
    let specimen = specimen(context, source::component(&from)?)?;
    let document = signatures::document(&SignedPlugin::local(&specimen.name, &specimen.good));
    let Some(key) = options.key.as_ref().filter(|_| !options.print_document) else {
        out::data(&document.text())?;
        return Ok(Exit::Success);
    };
    let facts = facts(&specimen, options)?;
    let comment = facts
        .write()
        .map_err(|error| CliError::user(error.to_string()))?;
    let Some(key) = secret_key(&context.surroundings.working_directory.join(key))? else {
        out::remark("nothing was signed");
        return Ok(Exit::Failure);
    };
    let signature = signed(&key, &document, &comment);
    let place = SignatureFile::Minisign.beside(&specimen.file);
    write(&specimen, &signature, options.add)?;
    match options.json.json {
        true => display::print_json(&json!({
            "file": specimen.file,
            "signature": place,
            "key": key.public().to_string(),
            "name": facts.name,
            "version": facts.version,
            "expires": facts.expires_at.map(|at| time::shown(at * 1000)),
            "document": document.text(),
        })),
        false => page(&specimen, &key, &facts, &place).print(),
    }?;
    Ok(Exit::Success)
}

/// Whether the signature is written into a folder of plugins: then it may change what is offered.
pub(super) fn is_offered(context: &Context, options: &PluginSign) -> bool {
    if options.key.is_none() || options.print_document {
        return false;
    }
    let from = context.surroundings.working_directory.join(&options.file);
    // Signing needs no configuration; where there is none to be read, nothing is offered.
    match (source::component(&from), context.config()) {
        (Ok(source), Ok(config)) => lies_in(&config.plugins.folders, &source.file),
        _ => false,
    }
}

/// Whether `file` lies in one of `folders`, however they are spelled.
fn lies_in(folders: &[PathBuf], file: &Path) -> bool {
    let real = |folder: &Path| folder.canonicalize().ok();
    let Some(beside) = file.parent().and_then(real) else {
        return false;
    };
    let mut folders = folders.iter();
    folders.any(|folder| real(folder).as_ref() == Some(&beside))
}

/// Loads a component exactly as one in a folder is loaded.
pub(super) fn specimen(context: &Context, source: ComponentSource) -> Result<Specimen, CliError> {
    let name = source::name(None, &source, &[])?;
    let bytes = add::read(&source.file)?;
    let good = tried(context, &name, &source.file, bytes)?;
    let file = source.file;
    Ok(Specimen { file, name, good })
}

/// The plugin that these bytes are; `file` is for messages.
pub(super) fn tried(
    context: &Context,
    name: &PluginId,
    file: &Path,
    bytes: ComponentBytes,
) -> Result<Arc<VettedPlugin>, CliError> {
    let limits = check::built_in(context)?.limits;
    let tell = super::progress(context);
    let engine = trial::engine(check::cache_dir(context)?, tell).map_err(StartError::Engine)?;
    context::block_on(async {
        let tried = trial::load(&engine, name, bytes, limits).await;
        tried.map_err(|reason| {
            let path = file.to_owned();
            let shown = display::path(file);
            CliError::from(ManageError::Bad { path, reason })
                .hint(format!("`zeph-host plugin check {shown}` says more"))
        })
    })
}

/// What is signed besides the digests.
fn facts(specimen: &Specimen, options: &PluginSign) -> Result<SignedFacts, CliError> {
    let own = specimen.good.about.version.as_ref();
    let version = match (&options.version, own) {
        (Some(said), Some(own)) if said != own => {
            return Err(CliError::user(format!(
                "the component says it is version {own}, and `--version` says {said}"
            ))
            .hint("leave `--version` out, or build the component with that version"));
        }
        (Some(said), _) => Some(said.clone()),
        (None, own) => own.cloned(),
    };
    let now = now_ms();
    let expires = options.expires.as_ref().map(|text| time::expiry(text, now));
    let expires = expires.transpose().map_err(CliError::user)?;
    let own = || own_name(&specimen.file, &specimen.name);
    Ok(SignedFacts {
        name: options.name.clone().or_else(own),
        version,
        signed_at: Some(now.div_euclid(1000)),
        expires_at: expires.map(|at_ms| at_ms.div_euclid(1000)),
    })
}

/// The name to sign. None where the project and its file are called differently: either may become the name of the plugin.
fn own_name(file: &Path, name: &PluginId) -> Option<String> {
    let is_of_file = file.file_stem() == Some(OsStr::new(&name.0));
    is_of_file.then(|| name.0.clone())
}

/// The signature with a key, as it is written.
pub(super) fn signed(
    key: &SecretKey,
    document: &DigestDocument,
    comment: &str,
) -> MinisignSignature {
    let untrusted = "signature of a plugin of zeph-host over its digest document";
    key.sign(document.text().as_bytes(), untrusted, comment)
}

/// The key in a file, whose password is asked for; none when the user gave up.
pub(super) fn secret_key(file: &Path) -> Result<Option<SecretKey>, CliError> {
    let mut bytes = Vec::new();
    let opened = File::open(file).map(|file| file.take(KEY_FILE_BYTES_MAX as u64 + 1));
    let read = opened.and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(|source| ManageError::Read {
        path: file.to_owned(),
        source,
    })?;
    let bad = |error| {
        CliError::user(format!("`{}` cannot be used as a key", file.display())).because(error)
    };
    let password = match SecretKey::is_encrypted(&bytes).map_err(bad)? {
        false => None,
        true => match password()? {
            Some(password) => Some(password),
            None => return Ok(None),
        },
    };
    let key = SecretKey::from_file(&bytes, password.as_deref());
    key.map(Some).map_err(bad)
}

/// From the terminal, or a line of standard input.
fn password() -> Result<Option<String>, CliError> {
    if io::stdin().is_terminal() {
        return keygen::typed("Password of the key (not shown): ");
    }
    let mut text = String::new();
    let mut bounded = io::stdin().lock().take(PASSWORD_BYTES_MAX as u64 + 2);
    let read = bounded.read_to_string(&mut text);
    read.map_err(|error| CliError::internal("standard input cannot be read").because(error))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(Some(line.to_owned())),
        _ => Err(
            CliError::user("the key is encrypted, and no password was given")
                .hint("type it on a terminal, or write one line to standard input"),
        ),
    }
}

/// Writes the signature beside the component: alone, or before those of other keys.
fn write(
    specimen: &Specimen,
    signature: &MinisignSignature,
    keeps_others: bool,
) -> Result<(), CliError> {
    let cannot = |problem: String| CliError::user(problem).hint("without `--add` it is replaced");
    let mut found = FoundSignatures::beside(&specimen.file).map_err(cannot)?;
    let mut all = vec![signature.clone()];
    if let (true, Some(file)) = (keeps_others, &found.minisign) {
        let others = MinisignSignature::all(file).map_err(|error| cannot(error.to_string()))?;
        let is_other = |other: &MinisignSignature| other.key_id != signature.key_id;
        all.extend(others.into_iter().filter(is_other));
    }
    if all.len() > SIGNATURES_MAX {
        return Err(cannot(format!(
            "a file has at most {SIGNATURES_MAX} signatures"
        )));
    }
    let text: String = all.iter().map(MinisignSignature::to_text).collect();
    found.minisign = Some(text.into_bytes());
    install::copy_signatures(&found, &InstallTarget::Same(specimen.file.clone()))?;
    Ok(())
}

fn page(specimen: &Specimen, key: &SecretKey, facts: &SignedFacts, place: &Path) -> Page {
    let mut page = Page::new();
    page.field("file", Some(&specimen.file.to_string_lossy()))
        .field("signature", Some(&place.to_string_lossy()))
        .field("key", Some(&key.public().to_string()))
        .field("name", facts.name.as_deref())
        .field("version", facts.version.as_deref());
    let expires = facts.expires_at.map(|at| time::shown(at * 1000));
    page.field("expires", expires.as_deref());
    page
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use zeph_core::id::PluginId;

    use super::{lies_in, own_name};

    #[test]
    fn a_component_in_a_folder_of_plugins_is_found_under_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        for folder in ["plugins", "project"] {
            std::fs::create_dir(top.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("plugins", top.join("alias")).unwrap();
        let folders = [top.join("missing"), top.join("plugins")];
        for (file, lies) in [
            ("plugins/x.wasm", true),
            ("alias/x.wasm", true),
            ("project/../plugins/x.wasm", true),
            ("project/x.wasm", false),
            ("missing/x.wasm", false),
        ] {
            assert_eq!(lies_in(&folders, &top.join(file)), lies, "{file}");
        }
    }

    #[test]
    fn a_name_is_signed_where_the_file_has_it_too() {
        for (file, name, signed) in [
            ("dist/weather.wasm", "weather", true),
            ("release/word_count.wasm", "word-count", false),
            ("My Plugin.wasm", "my_plugin", false),
        ] {
            let own = own_name(Path::new(file), &PluginId(name.to_owned()));
            assert_eq!(own, signed.then(|| name.to_owned()), "{file}");
        }
    }
}
