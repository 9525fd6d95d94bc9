//! `zeph-host plugin bundle`: everything a machine without a network needs, in one file.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use serde_json::json;
use zeph_artifact::bundle::{BundleDraft, BundledIndex, BundledPlugin, PartSource};
use zeph_config::Config;
use zeph_plugins::lock::{Lock, LockedPlugin};
use zeph_plugins::manage::sync::SyncFolder;

use super::display::{self, Page};
use super::folder;
use super::indexes::IndexReader;
use super::registry::Transfer;
use super::supply::{Supplied, Supply};
use crate::cli::args::PluginBundle;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;

/// Runs the command.
pub(super) fn run(context: &Context, options: &PluginBundle) -> Result<Exit, CliError> {
    let config = context.config()?;
    super::must_be_on(&config)?;
    let folder = SyncFolder::open(folder(&config)?)?;
    let lock = folder.lock()?;
    if lock.plugins().is_empty() {
        // With too many files nothing is pinned, and that is what there is to say.
        folder.plan(&lock)?;
        let problem = format!("no plugin is pinned for `{}`", folder.path().display());
        return Err(CliError::user(problem).hint("`zeph-host plugin add` installs one"));
    }
    context::block_on(async {
        let transfer = Transfer::new(context.quiet);
        let reader = IndexReader::new(context, &config, &transfer)?;
        let mut draft = BundleDraft::default();
        add_indexes(&mut draft, &reader).await?;
        let supply = Supply::Network(Box::new(reader.registries.clone()));
        for locked in lock.plugins() {
            let supplied = supplied(&folder, &supply, locked, &config).await?;
            let plugin = plugin(&mut draft, locked, supplied)?;
            draft.plugin(plugin);
        }
        transfer.end();
        let file = context.surroundings.working_directory.join(&options.file);
        let n_bytes = write(draft, &lock, &file, options.force)?;
        print(&lock, options, n_bytes)?;
        Ok(Exit::Success)
    })
}

/// Adds the indexes of the configuration. One that cannot be used is an error: the machine without a network would not know what was
/// withdrawn.
async fn add_indexes(draft: &mut BundleDraft, reader: &IndexReader<'_>) -> Result<(), CliError> {
    let (indexes, problems) = reader.all().await;
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem.hint("`--set 'plugins.index=[]'` makes a bundle without indexes"));
    }
    for opened in indexes {
        let document = draft.add(opened.document);
        let signature = draft.add(opened.signature);
        draft.index(BundledIndex {
            source: opened.source,
            document,
            signature,
        });
    }
    Ok(())
}

/// A plugin as the lock pins it: from the folder, else from where it comes from.
async fn supplied(
    folder: &SyncFolder,
    supply: &Supply,
    locked: &LockedPlugin,
    config: &Config,
) -> Result<Supplied, CliError> {
    let there = folder.component(&locked.name, locked.pin.wasm);
    match there.map_err(CliError::internal)? {
        Some((bytes, signatures)) => Ok(Supplied { bytes, signatures }),
        None => supply.get(locked, &config.plugins.signatures).await,
    }
}

fn plugin(
    draft: &mut BundleDraft,
    locked: &LockedPlugin,
    supplied: Supplied,
) -> Result<BundledPlugin, CliError> {
    let Supplied { bytes, signatures } = supplied;
    let mut part = |bytes: Option<Vec<u8>>| bytes.map(|bytes| draft.add(bytes));
    let minisign = part(signatures.minisign);
    let sigstore = part(signatures.bundles);
    let manifest = part(signatures.manifest);
    let component = locked.pin.wasm;
    draft.put(component, set_aside(&bytes)?);
    Ok(BundledPlugin {
        name: locked.name.0.clone(),
        component,
        minisign,
        sigstore,
        manifest,
    })
}

/// A component in a file without a name: all of them together may be more than fits into memory.
fn set_aside(bytes: &[u8]) -> Result<PartSource, CliError> {
    let written = || {
        let mut file = tempfile::tempfile()?;
        file.write_all(bytes)?;
        Ok::<_, std::io::Error>(file)
    };
    let file = written()
        .map_err(|error| CliError::internal("a temporary file cannot be written").because(error))?;
    let n_bytes = bytes.len() as u64;
    Ok(PartSource::File { file, n_bytes })
}

/// Writes the bundle beside its place and moves it there whole.
fn write(draft: BundleDraft, lock: &Lock, file: &Path, force: bool) -> Result<u64, CliError> {
    let cannot = || CliError::user(format!("`{}` cannot be written", file.display()));
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new()
        .prefix(".bundle-")
        .tempfile_in(folder)
        .map_err(|error| cannot().because(error))?;
    let mut out = BufWriter::new(temporary.as_file_mut());
    draft
        .write(&Lock::text_of(lock.plugins()), &mut out)
        .map_err(|error| cannot().because(error))?;
    out.flush().map_err(|error| cannot().because(error))?;
    drop(out);
    let synced = temporary.as_file().sync_all();
    let n_bytes = synced.and_then(|()| Ok(temporary.as_file().metadata()?.len()));
    let n_bytes = n_bytes.map_err(|error| cannot().because(error))?;
    let placed = match force {
        true => temporary.persist(file),
        false => temporary.persist_noclobber(file),
    };
    match placed {
        Ok(_) => Ok(n_bytes),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {
            let problem = format!("`{}` exists already", file.display());
            Err(CliError::user(problem).hint("`--force` replaces it"))
        }
        Err(error) => Err(cannot().because(error.error)),
    }
}

fn print(lock: &Lock, options: &PluginBundle, n_bytes: u64) -> Result<(), CliError> {
    let names: Vec<&str> = lock
        .plugins()
        .iter()
        .map(|plugin| plugin.name.0.as_str())
        .collect();
    if options.json.json {
        return display::print_json(&json!({
            "file": options.file,
            "bytes": n_bytes,
            "plugins": names,
        }));
    }
    let file = display::path(&options.file);
    let mut page = Page::new();
    page.line(0, &format!("{file} holds {}", names.join(", ")));
    page.dim(
        0,
        &format!(
            "`zeph-host plugin sync --from {file}` installs them on a machine without a network"
        ),
    );
    page.print()
}
