//! `zeph-host plugin add`: fetches a component, checks it and copies it into the folder of plugins.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use zeph_artifact::pulled::Pulled;
use zeph_config::Config;
use zeph_core::id::{Digest, PluginId};
use zeph_core::manifest::{Manifest, Want};
use zeph_engine::ComponentBytes;
use zeph_plugins::diff::{UpdateRisk, yanked_warning};
use zeph_plugins::keeper::locked;
use zeph_plugins::lock::{LockedPlugin, PluginSource};
use zeph_plugins::manage::holdings::Holdings;
use zeph_plugins::manage::install::{self, InstallTarget, Replace};
use zeph_plugins::manage::sync::{SeenPlugin, SyncFolder};
use zeph_plugins::manage::wishes::{self, WrittenRequests};
use zeph_plugins::manage::{ManageError, carrying, names, selection, source, trial};
use zeph_plugins::refusal::grant_command;
use zeph_plugins::set::{PluginStanding, Status, VettedPlugin};
use zeph_plugins::signature::FoundSignatures;

use super::display::{self, Page};
use super::origin::{Delivery, Origin};
use super::vouching::{self, Vouched};
use super::{consent, indexes, supply, update};
use crate::cli::args::PluginAdd;
use crate::cli::ask::{self, Answer, ask};
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;
use crate::clock::now_ms;
use crate::host::{Host, StartError};

/// What is to be added.
struct Addition {
    name: PluginId,
    /// Where it comes from: a file, or what was typed to fetch it.
    file: PathBuf,
    bytes: ComponentBytes,
    /// What was fetched; none for a file.
    pulled: Option<Pulled>,
    /// The same, as the lock pins it.
    source: PluginSource,
    /// What lies beside it.
    signatures: FoundSignatures,
    place: InstallTarget,
    /// What is there.
    seen: SeenPlugin,
}

/// Runs the command.
pub(super) fn run(context: &Context, options: &PluginAdd) -> Result<Exit, CliError> {
    let config = context.config()?;
    super::must_be_on(&config)?;
    let manifest = manifest(context, options)?;
    let origin = Origin::of(context, &options.from)?;
    context::block_on(async {
        // Its digest is right before anything looks into it.
        let delivery = origin.fetch(context, &config, options.sha256).await?;
        let addition = addition(context, &config, options, delivery)?;
        if manifest.is_some() {
            addition.must_be_accepted_at_once()?;
        }
        let good = addition.tried(context, &config).await?;
        let wants = wants(&good, manifest.as_ref())?;
        let signatures = &addition.signatures;
        let source = Some(&addition.source);
        let vouched = vouching::judged(&config, source, Arc::clone(&good), signatures)?;
        let mistagged = vouched.mistagged(&addition.source);
        let mistagged = mistagged.map(|told| format!("plugin `{}`: {told}", addition.name));
        context.notes(mistagged.as_slice());
        let indexes = indexes::usable(context, &config).await?;
        let new = addition.pinned(&vouched);
        let yanked = indexes::yanked(&indexes, &new, vouched.versions());
        let yanked = yanked.map(|reason| yanked_warning(&reason));
        let yes = match yanked {
            Some(_) => consent::names(&options.consent, UpdateRisk::Yanked),
            None => options.consent.yes,
        };
        let is_there = matches!(addition.place, InstallTarget::Same(_));
        if let (true, Some(warning)) = (is_there, &yanked) {
            context.notes(&[format!("plugin `{}`: {warning}", addition.name)]);
        }
        let must_agree = !is_there || vouched.asks;
        if must_agree && !agreed(&addition, (&vouched, wants), yanked.as_deref(), yes) {
            if options.json.json {
                display::print_json(&json!({ "name": addition.name, "added": false }))?;
            }
            return Ok(Exit::Confirm);
        }
        addition.put_in_place(&new)?;
        // A host that looks at it pins it.
        let mut host = super::settled(context, config.clone()).await?;
        if let Some(manifest) = &manifest {
            write(&host, &addition, manifest).await?;
            host = super::settled(context, config).await?;
        }
        let set = host.plugins();
        let standing = names::standing(&set, &addition.name.0, &[])?;
        let command = command(context, &host, standing).await?;
        match options.json.json {
            true => display::print_json(&as_json(&addition, standing, command.as_deref())),
            false => as_page(&addition, standing, command.as_deref()).print(),
        }?;
        Ok(match standing.status {
            Status::Quarantined(_) => Exit::Failure,
            _ => Exit::Success,
        })
    })
}

fn addition(
    context: &Context,
    config: &Config,
    options: &PluginAdd,
    delivery: Delivery,
) -> Result<Addition, ManageError> {
    let Delivery {
        source,
        bytes,
        pulled,
    } = delivery;
    let name = source::name(options.name.as_deref(), &source, &context.first_party())?;
    let known = names::known(&config.plugins.typed_first())?;
    let replace = match options.replace {
        true => Replace::Yes,
        false => Replace::No,
    };
    let wasm = zeph_engine::digest(&bytes);
    let folder = config.plugins.add_to.as_deref();
    let place = install::place(&name, wasm, &known, folder, replace)?;
    let seen = place.seen(&name, wasm, &known);
    let file = source.file;
    let (source, signatures) = match &pulled {
        Some(pulled) => (
            supply::source_of(pulled),
            supply::beside(pulled, &config.plugins.signatures),
        ),
        None => (
            supply::source_of_file(&file),
            FoundSignatures::beside(&file).map_err(|reason| ManageError::Bad {
                path: file.clone(),
                reason,
            })?,
        ),
    };
    Ok(Addition {
        name,
        file,
        bytes,
        pulled,
        source,
        signatures,
        place,
        seen,
    })
}

/// What it is to want, where the operator says so.
fn manifest(context: &Context, options: &PluginAdd) -> Result<Option<Manifest>, ManageError> {
    let here = &context.surroundings.working_directory;
    let file = options.manifest.as_ref();
    file.map(|file| wishes::read(&here.join(file))).transpose()
}

/// What it will want.
///
/// Errors: `State` when both its author and the operator say so.
fn wants<'a>(
    good: &'a VettedPlugin,
    manifest: Option<&'a Manifest>,
) -> Result<&'a [Want], ManageError> {
    match manifest {
        None => Ok(&good.manifest.wants),
        Some(manifest) if wishes::may_be_written(good) => Ok(&manifest.wants),
        Some(_) => Err(ManageError::State {
            name: good.plugin.id().clone(),
            state: "has a manifest of its own, or cannot be granted anything".to_owned(),
            hint: Some("leave `--manifest` out".to_owned()),
        }),
    }
}

/// Writes what the operator wants for it into the lock, if it is what is pinned there.
async fn write(host: &Host, addition: &Addition, manifest: &Manifest) -> Result<(), CliError> {
    let set = host.plugins();
    let name = &addition.name;
    let standing = names::standing(&set, &name.0, &[])?;
    let pin = standing.good.as_ref().map(|good| good.pin);
    let pin = pin.filter(|pin| pin.wasm == addition.wasm());
    let pin = pin.ok_or_else(|| ManageError::Meanwhile(name.clone()))?;
    let folder = &host.config().plugins.folders[standing.folder_idx];
    let WrittenRequests { old, new } = wishes::write(folder, name, manifest, Some(pin))?;
    let place = (host.config(), host.store());
    Ok(carrying::carry(place, folder, name, (old, new)).await?)
}

/// Reads a component that was named on the command line.
pub(super) fn read(file: &Path) -> Result<ComponentBytes, ManageError> {
    ComponentBytes::read(file).map_err(|source| ManageError::Read {
        path: file.to_owned(),
        source,
    })
}

impl Addition {
    fn wasm(&self) -> Digest {
        zeph_engine::digest(&self.bytes)
    }

    /// That no other component stays what is accepted under its name: what its operator requests would be written for that one.
    ///
    /// Errors: `State`.
    fn must_be_accepted_at_once(&self) -> Result<(), ManageError> {
        let wasm = self.wasm();
        if self.seen.pin.is_none_or(|pin| pin.wasm == wasm) {
            return Ok(());
        }
        let name = &self.name;
        Err(ManageError::State {
            name: name.clone(),
            state: "would be replaced and wait for its approval, before which nothing can be requested for it".to_owned(),
            hint: Some(format!(
                "leave `--manifest` out, approve it with `zeph-host plugin approve {name}`, and then give it the manifest with the same `plugin add`"
            )),
        })
    }

    /// As it will be pinned.
    fn pinned(&self, vouched: &Vouched) -> LockedPlugin {
        LockedPlugin {
            provenance: Some(update::provenance(self.source.clone(), None, vouched)),
            ..locked(self.place.file(), &vouched.good, now_ms())
        }
    }

    /// Puts it into the folder and into the lock, with where it comes from and who signed it. What is there already learns that.
    fn put_in_place(&self, new: &LockedPlugin) -> Result<(), CliError> {
        let folder = self.place.file().parent().unwrap_or(Path::new("."));
        // What is the same keeps what vouches for it.
        let signatures = match &self.place {
            InstallTarget::Same(target) if self.signatures.is_empty() => {
                FoundSignatures::beside(target).map_err(CliError::internal)?
            }
            _ => self.signatures.clone(),
        };
        let folder = SyncFolder::open(folder)?;
        Ok(folder.add(self.seen, new, (&self.bytes[..], &signatures))?)
    }

    /// What was fetched, as it can be compared with what its publisher states.
    fn digests(&self) -> Vec<(&'static str, Digest)> {
        let Some(pulled) = &self.pulled else {
            return Vec::new();
        };
        let manifest = pulled.manifest_digest();
        let manifest = manifest.map(|digest| ("manifest", digest));
        let component = ("component", pulled.component.digest());
        manifest.into_iter().chain([component]).collect()
    }

    /// The plugin as it will be loaded: read, compiled, asked for its tools with nothing granted.
    async fn tried(
        &self,
        context: &Context,
        config: &Config,
    ) -> Result<std::sync::Arc<VettedPlugin>, CliError> {
        let tell = super::progress(context);
        let engine =
            trial::engine(config.engine.cache_dir.clone(), tell).map_err(StartError::Engine)?;
        let bytes = self.bytes.clone();
        let tried = trial::load(&engine, &self.name, bytes, config.limits).await;
        tried.map_err(|reason| {
            let error = ManageError::Bad {
                path: self.file.clone(),
                reason,
            };
            let file = display::path(&self.file);
            match self.pulled {
                None => {
                    CliError::from(error).hint(format!("`zeph-host plugin check {file}` says more"))
                }
                Some(_) => CliError::from(error),
            }
        })
    }
}

/// Shape: `yanked` says that its publisher withdrew it.
fn agreed(
    addition: &Addition,
    (vouched, wants): (&Vouched, &[Want]),
    yanked: Option<&str>,
    yes: bool,
) -> bool {
    let good = &vouched.good;
    let name = &addition.name;
    let question = match &addition.place {
        InstallTarget::Taken(file) => format!("Put it in the place of `{}`?", file.display()),
        _ => format!("Add it as plugin `{name}`?"),
    };
    if !yes {
        let mut page = Page::for_stderr();
        page.line(0, &format!("`{}`", addition.file.display()));
        for (label, digest) in addition.digests() {
            page.line(1, &format!("{label} {digest}"));
        }
        page.line(1, &signed_by(vouched));
        if let Some(warning) = yanked {
            page.line(1, warning);
        }
        for tool in good.plugin.tools() {
            page.line(1, &format!("tool {}", tool.name));
        }
        for strategy in good.plugin.strategies() {
            page.line(1, &format!("filter strategy {}", strategy.name));
        }
        for want in wants {
            page.line(1, &format!("requests {}: {}", want.capability, want.reason));
        }
        // Only who is asked has to see it before.
        if ask::is_possible() {
            page.print_to_stderr();
        }
    }
    match (ask(&question, yes), yanked) {
        (Answer::Yes, _) => true,
        (Answer::Nobody, Some(warning)) => {
            out::note(&format!(
                "nothing was added: {warning}; `--yes --accept yanked` adds it all the same"
            ));
            false
        }
        // What nobody signed is used after a person agreed to it, where the operator decided so.
        (Answer::Nobody, None) if vouched.asks => {
            out::note(
                "nothing was added: no known signer signed it, and `plugins.trust.unsigned` is \"ask\"; `--yes` adds it all the same",
            );
            false
        }
        (Answer::Nobody, None) => true,
        (Answer::No, _) => {
            out::remark("nothing was added");
            false
        }
    }
}

/// Who vouches for it, in words.
fn signed_by(vouched: &Vouched) -> String {
    match &vouched.signer {
        Some(by) => format!("signed by {} ({})", by.signer, by.key),
        None => "not signed by a known signer".to_owned(),
    }
}

/// The command that grants what it wants and does not have; none when there is nothing, or it can be granted nothing now.
async fn command(
    context: &Context,
    host: &Host,
    standing: &PluginStanding,
) -> Result<Option<String>, CliError> {
    let (Status::Active, Some(good)) = (&standing.status, &standing.good) else {
        return Ok(None);
    };
    let name = &standing.name;
    let grants = host.store().list_grants(Some(name.clone())).await?;
    let holdings = Holdings::new(&good.manifest, good.pin, grants, host.config(), now_ms());
    let missing = selection::possible(holdings.missing(), host.config()).capabilities;
    let command = (!missing.is_empty()).then(|| grant_command(&context.program(), name, &missing));
    Ok(command)
}

fn as_page(addition: &Addition, standing: &PluginStanding, command: Option<&str>) -> Page {
    let name = &standing.name;
    let mut page = Page::new();
    let file = standing.path.display();
    match addition.place {
        InstallTarget::Same(_) => {
            page.line(0, &format!("plugin `{name}` is there already: `{file}`"))
        }
        InstallTarget::Free(_) => page.line(0, &format!("plugin `{name}` is added: `{file}`")),
        InstallTarget::Taken(_) => page.line(0, &format!("plugin `{name}` is replaced: `{file}`")),
    };
    match &standing.status {
        Status::Changed => page.line(
            0,
            &format!("it is off until `zeph-host plugin approve {name}`"),
        ),
        Status::Disabled => page.line(
            0,
            &format!("it is off until `zeph-host plugin enable {name}`"),
        ),
        Status::Quarantined(reason) => page.line(0, &format!("it is not used: {reason}")),
        Status::Active | Status::Loading => &mut page,
    };
    for tool in &standing.tools {
        page.line(1, &format!("tool {tool}"));
    }
    for strategy in &standing.strategies {
        page.line(1, &format!("filter strategy wasm:{strategy}"));
    }
    let good = standing.good.as_ref();
    for want in good.iter().flat_map(|good| &good.manifest.wants) {
        page.line(1, &format!("requests {}", want.capability));
        page.dim(2, &format!("it says: {}", want.reason));
    }
    if let Some(command) = command {
        page.line(0, "to grant what it requests and does not have:");
        page.line(1, command);
    }
    page
}

fn as_json(addition: &Addition, standing: &PluginStanding, command: Option<&str>) -> Value {
    let good = standing.good.as_ref();
    let mut members = display::members(json!({
        "name": standing.name,
        "file": standing.path,
        "source": addition.pulled.as_ref().map(|pulled| &pulled.source),
        "manifest_digest": addition.pulled.as_ref().and_then(Pulled::manifest_digest),
        "added": match addition.place {
            InstallTarget::Same(_) => "already_there",
            InstallTarget::Free(_) => "new",
            InstallTarget::Taken(_) => "replaced",
        },
        "pin": good.map(|good| good.pin),
        "tools": standing.tools,
        "strategies": standing.strategies,
        "wants": good.map(|good| good.manifest.wants.as_slice()).unwrap_or_default(),
        "grant_command": command,
    }));
    members.extend(display::status_json(&standing.status));
    Value::Object(members)
}
