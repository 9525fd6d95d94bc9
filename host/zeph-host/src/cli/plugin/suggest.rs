//! `zeph-host plugin suggest`: the smallest grant that recorded calls of a plugin need, beside what it is granted now.

use std::sync::Arc;

use serde_json::{Value, json};
use zeph_core::capability::Capability;
use zeph_plugins::manage::holdings::Holdings;
use zeph_plugins::manage::names;
use zeph_plugins::refusal::grant_command;
use zeph_plugins::rights;
use zeph_plugins::set::{PluginOrigin, VettedPlugin};
use zeph_store::GrantRecord;

use super::display::{self, Page};
use crate::cli::args::PluginSuggest;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::records;
use crate::clock::now_ms;
use crate::host::Host;
use crate::recording::OwnerKind;
use crate::suggestion::grants::{GrantSuggestion, PluginUses};
use crate::suggestion::{self, ReadRecords};

/// What a plugin holds now.
struct Held {
    good: Arc<VettedPlugin>,
    origin: PluginOrigin,
    grants: Vec<GrantRecord>,
    /// What calls get of it.
    effective: Vec<Capability>,
}

/// What is to be changed.
struct Change<'a> {
    held: &'a Held,
    suggestion: GrantSuggestion,
    read: ReadRecords,
    commands: Vec<String>,
}

/// Runs the command.
pub(super) fn run(context: &Context, options: &PluginSuggest) -> Result<Exit, CliError> {
    let config = context.config()?;
    context::block_on(async {
        let host = super::settled(context, config).await?;
        let held = held(context, &host, &options.name).await?;
        let (uses, read) = read(context, options, &held)?;
        if read.calls == 0 {
            let problem = format!(
                "`{}` holds no call of plugin `{}` that counts",
                options.records.from.display(),
                options.name
            );
            return Err(CliError::user(problem).hint(match read.notes().join("; ") {
                notes if notes.is_empty() => {
                    "record some with `zeph-host run --record FILE`".to_owned()
                }
                notes => notes,
            }));
        }
        let allowed = match options.beyond_grants {
            true => rights::wanted(&held.good.manifest, host.config()),
            false => held.effective.clone(),
        };
        let suggestion = uses.suggestion(&allowed);
        let change = Change {
            commands: commands(&context.program(), &held, &suggestion),
            held: &held,
            suggestion,
            read,
        };
        match options.records.json.json {
            true => display::print_json(&change.json())?,
            false => change.page(context)?,
        }
        Ok(Exit::Success)
    })
}

/// The plugin as it is now, with its active grants.
async fn held(context: &Context, host: &Host, name: &str) -> Result<Held, CliError> {
    let set = host.plugins();
    let (good, origin) = match names::first_party(&set, name) {
        Some(own) => (Arc::clone(&own.good), PluginOrigin::Program),
        None => {
            let standing = names::standing(&set, name, &context.first_party())?;
            let good = standing.good.clone().ok_or_else(|| {
                CliError::user(format!("plugin `{name}` is not loaded"))
                    .hint(format!("look at it with `zeph-host plugin info {name}`"))
            })?;
            (good, PluginOrigin::Folder)
        }
    };
    let id = good.plugin.id().clone();
    let mut grants = host.store().list_grants(Some(id.clone())).await?;
    grants.retain(|grant| origin == PluginOrigin::Program || grant.pin == good.pin);
    if origin == PluginOrigin::Program && host.store().has_defaults(id).await? {
        grants.extend(rights::default_grants(&good, host.config()));
    }
    let holdings = Holdings::new(
        &good.manifest,
        good.pin,
        grants.clone(),
        host.config(),
        now_ms(),
    );
    let wants = holdings.wants.into_iter();
    Ok(Held {
        effective: wants.flat_map(|held| held.effective).collect(),
        good,
        origin,
        grants,
    })
}

/// What the recorded calls of the plugin, as it is now, used.
fn read(
    context: &Context,
    options: &PluginSuggest,
    held: &Held,
) -> Result<(PluginUses, ReadRecords), CliError> {
    let digest = held.good.plugin.digest().to_string();
    let mut uses = PluginUses::default();
    let file = context
        .surroundings
        .working_directory
        .join(&options.records.from);
    let take = |call: crate::recording::CallRecord, read: &mut ReadRecords| {
        let owner = call.owner.as_ref().filter(|owner| {
            owner.kind == OwnerKind::Plugin && owner.name.as_deref() == Some(&options.name)
        });
        match owner {
            None => {}
            Some(owner) if owner.digest.as_deref() != Some(&digest) => read.other_digest += 1,
            Some(_) => {
                read.calls += 1;
                read.incomplete += u64::from(call.omitted > 0);
                uses.add(&call);
            }
        }
    };
    let read = suggestion::read(&file, options.records.include_untrusted, take);
    let read = read.map_err(records::unusable)?;
    Ok((uses, read))
}

/// The commands that change what is granted now to what is suggested. Revocations come first: `--all` takes everything.
fn commands(program: &str, held: &Held, suggestion: &GrantSuggestion) -> Vec<String> {
    let name = held.good.plugin.id();
    let is_kept = |grant: &GrantRecord| suggestion.grants.contains(&grant.capability);
    let mut commands = Vec::new();
    let loses_default = held
        .grants
        .iter()
        .any(|grant| grant.id == 0 && !is_kept(grant));
    let stays = |grant: &&GrantRecord| is_kept(grant) && !loses_default;
    let gone: Vec<String> = held
        .grants
        .iter()
        .filter(|grant| !is_kept(grant) && grant.id != 0)
        .map(|grant| format!("--id {}", grant.id))
        .collect();
    if loses_default {
        commands.push(format!("{program} plugin revoke {name} --all"));
    } else if !gone.is_empty() {
        commands.push(format!("{program} plugin revoke {name} {}", gone.join(" ")));
    }
    let kept: Vec<&Capability> = held
        .grants
        .iter()
        .filter(stays)
        .map(|grant| &grant.capability)
        .collect();
    let new: Vec<Capability> = suggestion
        .grants
        .iter()
        .filter(|grant| !kept.contains(grant))
        .cloned()
        .collect();
    if !new.is_empty() {
        commands.push(grant_command(program, name, &new));
    }
    commands
}

impl Change<'_> {
    /// Each grant with `-` for one that is not needed, `+` for a new one, and a blank for one that stays.
    fn lines(&self) -> Vec<String> {
        let grants = &self.held.grants;
        let suggested = &self.suggestion.grants;
        let mut lines: Vec<String> = Vec::new();
        for grant in grants {
            let mark = match suggested.contains(&grant.capability) {
                true => ' ',
                false => '-',
            };
            lines.push(format!("{mark} {}", grant.capability));
        }
        let is_new = |one: &&Capability| !grants.iter().any(|grant| grant.capability == **one);
        let new = suggested.iter().filter(is_new);
        lines.extend(new.map(|capability| format!("+ {capability}")));
        lines.dedup();
        lines
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.read.notes();
        notes.extend(self.suggestion.notes.iter().cloned());
        let outside = self.suggestion.outside.iter();
        notes.extend(outside.map(|one| {
            format!("recorded, and not suggested because it is not granted now: {one}")
        }));
        notes
    }

    fn json(&self) -> Value {
        let held = self.held;
        json!({
            "name": held.good.plugin.id(),
            "digest": held.good.plugin.digest().to_string(),
            "is_own": held.origin == PluginOrigin::Program,
            "records": self.read,
            "granted": held.grants.iter().map(display::grant_json).collect::<Value>(),
            "suggested": self.suggestion.grants,
            "difference": self.lines(),
            "commands": self.commands,
            "unseen": self.suggestion.unseen,
            "denied": records::denied_json(&self.suggestion.denied),
            "outside": self.suggestion.outside,
            "notes": self.notes(),
        })
    }

    fn page(&self, context: &Context) -> Result<(), CliError> {
        context.notes(&self.notes());
        let mut page = Page::new();
        page.line(
            0,
            &format!(
                "plugin `{}`: {} recorded, compared with what is granted now",
                self.held.good.plugin.id(),
                records::calls(self.read.calls)
            ),
        );
        for line in self.lines() {
            page.line(1, &line);
        }
        records::siblings(&mut page, &self.suggestion.unseen);
        records::denied(&mut page, &self.suggestion.denied);
        match self.commands.is_empty() {
            true => page.line(0, "nothing is to be changed"),
            false => page.line(0, "to change it:"),
        };
        for command in &self.commands {
            records::pasted(&mut page, 1, command);
        }
        page.print()
    }
}
