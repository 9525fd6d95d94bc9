//! `zeph-host plugin update`: fetches another version of a plugin, shows what is different, asks, and puts it in the place of the old one.

use std::path::{Path, PathBuf};

use semver::Version;
use serde_json::json;
use zeph_artifact::reference::{ArtifactSource, Reference};
use zeph_artifact::registry::Registries;
use zeph_config::Config;
use zeph_plugins::diff::{self, Changes, UpdateRisk};
use zeph_plugins::keeper::locked;
use zeph_plugins::lock::{LockedPlugin, PluginSource, Provenance, version_of_tag};
use zeph_plugins::manage::sync::SyncFolder;
use zeph_plugins::manage::{carrying, names};
use zeph_plugins::set::ManifestBy;
use zeph_store::Store;

use super::consent;
use super::display::{self, Page};
use super::indexes::{self, IndexReader, OpenedIndex};
use super::registry::Transfer;
use super::releases::{self, PinnedRelease, Release};
use super::supply::{self, Supplied, Supply};
use super::vouching::{Vouched, Voucher, pinned};
use crate::cli::args::PluginUpdate;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::clock::now_ms;

/// Another version of a plugin, fetched and not accepted yet.
struct NextPlugin {
    source: PluginSource,
    version: Option<Version>,
    supplied: Supplied,
    /// Why what is installed is not used, where these are the same bytes with other signatures.
    renews: Option<CliError>,
}

/// Runs the command.
pub(super) fn run(context: &Context, options: &PluginUpdate) -> Result<Exit, CliError> {
    let config = context.config()?;
    super::must_be_on(&config)?;
    let (path, old) = old(context, &config, &options.name)?;
    let folder = SyncFolder::open(&path)?;
    context::block_on(async {
        let transfer = Transfer::new(context.quiet);
        let reader = IndexReader::new(context, &config, &transfer)?;
        let voucher = Voucher::new(context, &config)?;
        let indexes = reader.usable(context).await;
        let place = (&reader, &folder, &voucher);
        let next = next(context, place, &indexes, &old, options).await;
        transfer.end();
        let Some(next) = next? else {
            nothing_newer(&old, options.json.json)?;
            return Ok(Exit::Success);
        };
        let update = Update::of(&voucher, &indexes, &old, next).await?;
        if !options.json.json {
            update.page().print()?;
        }
        let is_agreed = update.agreed(options);
        if is_agreed {
            update.carry_out((&config, &reader.store), &folder).await?;
        }
        update.print(is_agreed, options.json.json)?;
        Ok(match is_agreed {
            true => Exit::Success,
            false => Exit::Confirm,
        })
    })
}

/// What the lock of its folder pins under this name.
fn old(
    context: &Context,
    config: &Config,
    name: &str,
) -> Result<(PathBuf, LockedPlugin), CliError> {
    let known = names::known(&config.plugins.typed_first())?;
    let known = names::find(&known, name, &context.first_party())?;
    match known.locked.clone() {
        Some(locked) => Ok((known.folder.clone(), locked)),
        None => Err(CliError::user(format!("plugin `{name}` is not pinned"))
            .hint("`zeph-host plugin list` says how it stands")),
    }
}

/// What it is to be updated to; `None` when it is what its source offers.
async fn next(
    context: &Context,
    (reader, folder, voucher): (&IndexReader<'_>, &SyncFolder, &Voucher<'_>),
    indexes: &[OpenedIndex],
    old: &LockedPlugin,
    options: &PluginUpdate,
) -> Result<Option<NextPlugin>, CliError> {
    let Some(source) = old.source() else {
        let name = &old.name;
        let problem = format!("the lock does not say where plugin `{name}` comes from");
        return Err(CliError::user(problem).hint(format!(
            "`zeph-host plugin add REF --name {name} --replace` takes a version from elsewhere"
        )));
    };
    if let PluginSource::File { path } = source {
        return of_file(path, (folder, voucher), old, options).await;
    }
    let registries = &reader.registries;
    let releases = releases::all(registries, old, indexes).await?;
    let release = match &options.to {
        Some(to) => Some(asked_for(&releases, old, to)?.clone()),
        None => newest(context, (registries, indexes, folder), old, &releases).await?,
    };
    let policy = voucher.policy();
    let Some(release) = release else {
        // There may be other signatures of the same.
        let Some(renews) = voucher.problem_of_installed(folder, old).await else {
            return Ok(None);
        };
        let supply = Supply::Network(Box::new(registries.clone()));
        return Ok(Some(NextPlugin {
            source: source.clone(),
            version: old.version().cloned(),
            supplied: supply.get(old, policy).await?,
            renews: Some(renews),
        }));
    };
    let pulled = registries.fetch(&release.source, release.wasm).await?;
    let source = supply::source_of(&pulled);
    let supplied = supply::of_pulled(pulled, policy)?;
    let is_same = zeph_engine::digest(&supplied.bytes) == old.pin.wasm;
    let renews = match is_same {
        true => voucher.problem_of_installed(folder, old).await,
        false => None,
    };
    Ok((!is_same || renews.is_some()).then_some(NextPlugin {
        source,
        version: release.version,
        supplied,
        renews,
    }))
}

/// A file of this machine that is another than it was.
async fn of_file(
    path: &Path,
    (folder, voucher): (&SyncFolder, &Voucher<'_>),
    old: &LockedPlugin,
    options: &PluginUpdate,
) -> Result<Option<NextPlugin>, CliError> {
    if options.to.is_some() {
        let problem = format!(
            "plugin `{}` comes from a file, which has one version",
            old.name
        );
        return Err(CliError::user(problem).hint("leave `--to` out"));
    }
    let wasm = zeph_engine::digest(&super::add::read(path)?);
    let is_same = wasm == old.pin.wasm;
    let renews = match is_same {
        true => voucher.problem_of_installed(folder, old).await,
        false => None,
    };
    if is_same && renews.is_none() {
        return Ok(None);
    }
    Ok(Some(NextPlugin {
        source: PluginSource::File {
            path: path.to_owned(),
        },
        version: None,
        supplied: supply::of_file(path, wasm)?,
        renews,
    }))
}

/// The newest release, else what its tag stands for by now.
async fn newest(
    context: &Context,
    (registries, indexes, folder): (&Registries, &[OpenedIndex], &SyncFolder),
    old: &LockedPlugin,
    releases: &[Release],
) -> Result<Option<Release>, CliError> {
    let pinned = PinnedRelease::of(registries, folder, old, releases).await?;
    let newest = releases::newest(registries, indexes, releases, &pinned).await;
    if newest.is_some() {
        return Ok(newest);
    }
    context.notes(releases::passed_over(releases, &pinned).as_slice());
    moved(registries, old).await
}

/// The release of the version or tag `to`.
fn asked_for<'a>(
    releases: &'a [Release],
    old: &LockedPlugin,
    to: &str,
) -> Result<&'a Release, CliError> {
    let is_asked_for = |release: &&Release| {
        let tag = release.source.reference().and_then(Reference::tag);
        tag == Some(to) || release.version.is_some() && release.version == version_of_tag(to)
    };
    releases.iter().find(is_asked_for).ok_or_else(|| {
        let problem = format!(
            "plugin `{}` has no version `{to}` where it comes from",
            old.name
        );
        CliError::user(problem)
            .hint("`zeph-host plugin outdated` shows the newest; a version is a tag of its repository, or stands in an index")
    })
}

/// What the tag of a plugin stands for now, if that is no version (such as `latest`) and something else than what was accepted.
pub(super) async fn moved(
    registries: &Registries,
    old: &LockedPlugin,
) -> Result<Option<Release>, CliError> {
    let is_no_version = |tag: &str| version_of_tag(tag).is_none();
    let found = releases::standing(registries, old, is_no_version).await?;
    let moved = found.filter(|(_, is_same)| !is_same);
    Ok(moved.map(|(reference, _)| Release {
        version: None,
        source: ArtifactSource::Registry(reference),
        wasm: None,
        yanked: None,
    }))
}

/// An update that a person decides about.
struct Update {
    old: LockedPlugin,
    new: LockedPlugin,
    changes: Changes,
    supplied: Supplied,
    /// Whether the old one counts no longer, and these are the same bytes.
    renews: bool,
}

impl Update {
    /// Errors: it is no plugin, or refused.
    async fn of(
        voucher: &Voucher<'_>,
        indexes: &[OpenedIndex],
        old: &LockedPlugin,
        next: NextPlugin,
    ) -> Result<Self, CliError> {
        let NextPlugin {
            source,
            version,
            supplied,
            renews,
        } = next;
        let vouched = voucher.vouched(&old.name, Some(&source), &supplied).await?;
        let mistagged = vouched.mistagged(&source);
        let said = vouched.versions().into_iter().chain(version.clone());
        let said: Vec<Version> = said.collect();
        let new = LockedPlugin {
            provenance: Some(provenance(source, version, &vouched)),
            ..pinned_as(old, &vouched)
        };
        // A tag says nothing: what was fetched may have been withdrawn as another version.
        let yanked = indexes::yanked(indexes, &new, said);
        let mut changes = diff::between_versions(old, &new, yanked.as_deref());
        if let Some(told) = mistagged {
            changes.note(told);
        }
        if vouched.asks {
            changes.warn(UpdateRisk::Unsigned, "no known signer signed it");
        }
        if let Some(problem) = &renews {
            let problem = problem.problems.join("; ");
            changes.note(format!(
                "its source has other signatures for the same component; with those it has now, {problem}"
            ));
        }
        Ok(Self {
            old: old.clone(),
            new,
            changes,
            supplied,
            renews: renews.is_some(),
        })
    }

    fn page(&self) -> Page {
        let mut page = Page::new();
        page.name(0, &self.old.name.0, "would change");
        page.diff(&self.changes.lines());
        page
    }

    fn agreed(&self, options: &PluginUpdate) -> bool {
        let name = &self.old.name;
        let question = format!("Put it in the place of plugin `{name}`?");
        let command = match &options.to {
            Some(to) => format!("zeph-host plugin update {name} --to {to}"),
            None => format!("zeph-host plugin update {name}"),
        };
        let is_json = options.json.json;
        consent::given(
            (&question, &command),
            &options.consent,
            is_json,
            self.changes.risks(),
        )
    }

    async fn carry_out(
        &self,
        place: (&Config, &Store),
        folder: &SyncFolder,
    ) -> Result<(), CliError> {
        let content = (&self.supplied.bytes[..], &self.supplied.signatures);
        folder.update(Some(&self.old), &self.new, content)?;
        carry_grants(place, folder, Some(&self.old), &self.new).await
    }

    fn print(&self, is_agreed: bool, is_json: bool) -> Result<(), CliError> {
        let name = &self.old.name;
        if is_json {
            return display::print_json(&json!({
                "name": name,
                "changed": true,
                "updated": is_agreed,
                "version": self.new.version(),
                "source": self.new.source(),
                "signer": self.new.signer(),
                "changes": self.changes,
            }));
        }
        if !is_agreed {
            return Ok(());
        }
        let mut page = Page::new();
        page.head(&match self.renews {
            true => format!("plugin `{name}` has the signatures of its source"),
            false => format!("plugin `{name}` is updated"),
        });
        if self.old.disabled {
            page.line(
                0,
                &format!("it stays off until `zeph-host plugin enable {name}`"),
            );
        }
        page.print()
    }
}

/// The plugin as it will be pinned. What the operator requested for it, in place of its author, stays.
fn pinned_as(old: &LockedPlugin, vouched: &Vouched) -> LockedPlugin {
    let file = format!("{}.wasm", old.name);
    let now_ms = now_ms();
    let good = &vouched.good;
    match old.operator_wants && good.manifest_by == ManifestBy::Nobody {
        true => {
            let good = good.with_wants(old.definitions.wants());
            locked(Path::new(&file), &good, now_ms)
        }
        false => locked(Path::new(&file), good, now_ms),
    }
}

/// Where a plugin was had from. Of versions the one in its signature counts first; then what a signed component says before its tag, which
/// its registry chooses; then that of the tag, or `listed` of the index; then what the component says.
pub(super) fn provenance(
    source: PluginSource,
    listed: Option<Version>,
    vouched: &Vouched,
) -> Provenance {
    let of_text = |text: Option<&str>| text.and_then(version_of_tag);
    let of_signature = vouched.signer.as_ref().and_then(|by| by.version.as_deref());
    let is_tag = matches!(source, PluginSource::Registry { .. });
    let signed = || vouched.signed_version().filter(|_| is_tag);
    let said = || of_text(vouched.good.about.version.as_deref());
    Provenance {
        version: of_text(of_signature)
            .or_else(signed)
            .or_else(|| source.tagged_version())
            .or(listed)
            .or_else(said),
        signer: vouched.signer.as_ref().map(pinned),
        source,
    }
}

/// Lets what was granted to the old version count for the new one. The pin stands by then: a failure costs grants and gives none.
pub(super) async fn carry_grants(
    place: (&Config, &Store),
    folder: &SyncFolder,
    old: Option<&LockedPlugin>,
    new: &LockedPlugin,
) -> Result<(), CliError> {
    let Some(old) = old else {
        return Ok(());
    };
    let pins = (old.pin, new.pin);
    let carried = carrying::carry(place, folder.path(), &new.name, pins);
    carried.await.map_err(|error| {
        CliError::from(error)
            .hint("the plugin is updated, and what it was granted has to be granted again")
    })
}

fn nothing_newer(old: &LockedPlugin, is_json: bool) -> Result<(), CliError> {
    let name = &old.name;
    if is_json {
        return display::print_json(&json!({
            "name": name,
            "changed": false,
            "updated": false,
            "version": old.version(),
        }));
    }
    let mut page = Page::new();
    let version = old.version().map(|version| format!(" ({version})"));
    page.line(
        0,
        &format!(
            "plugin `{name}` is the newest that its source offers{}",
            version.unwrap_or_default()
        ),
    );
    page.print()
}
