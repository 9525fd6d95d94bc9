//! `zeph-host grants`: what plugins are granted, and when calls last used it.

use serde_json::{Value, json};
use zeph_core::id::PluginId;
use zeph_plugins::rights;
use zeph_store::{GrantRecord, GrantUses};

use super::args::Grants;
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::page::print_json;
use super::plugin::{self, display};
use super::{records, time};
use crate::clock::now_ms;
use crate::host::Host;
use crate::run::page::Page;

/// A grant, and what is known of its use.
struct GrantRow {
    grant: GrantRecord,
    used_at_ms: Option<i64>,
}

/// What was asked for, and what is known at all.
struct Listing {
    rows: Vec<GrantRow>,
    /// Since when uses are kept.
    since_ms: i64,
    /// Only grants unused since then are listed.
    unused_since_ms: Option<i64>,
    program: String,
}

/// Runs the command.
pub(super) fn run(context: &Context, options: &Grants) -> Result<Exit, CliError> {
    let unused_since_ms = options.unused.as_deref();
    let unused_since_ms = unused_since_ms.map(|text| time::read(text, now_ms()));
    let unused_since_ms = unused_since_ms.transpose().map_err(CliError::user)?;
    let config = context.config()?;
    context::block_on(async {
        let host = plugin::settled(context, config).await?;
        let uses = host.store().grant_uses().await?;
        let mut rows: Vec<GrantRow> = granted(&host)
            .await?
            .into_iter()
            .map(|grant| GrantRow {
                used_at_ms: last_use(&uses, &grant),
                grant,
            })
            .collect();
        if let Some(since_ms) = unused_since_ms {
            rows.retain(|row| row.is_unused(since_ms));
        }
        let listing = Listing {
            rows,
            since_ms: uses.since_ms,
            unused_since_ms,
            program: context.program(),
        };
        context.notes(&listing.caveats());
        match options.json.json {
            true => print_json(&listing.json())?,
            false => listing.page().print()?,
        }
        Ok(Exit::Success)
    })
}

/// Every active grant, default grants of the plugins of the program among them.
async fn granted(host: &Host) -> Result<Vec<GrantRecord>, CliError> {
    let mut grants = host.store().list_grants(None).await?;
    let set = host.plugins();
    for own in set.of_program() {
        if host.store().has_defaults(own.plugin.id().clone()).await? {
            grants.extend(rights::default_grants(own, host.config()));
        }
    }
    grants.sort_by(|one, other| (&one.plugin.0, one.id).cmp(&(&other.plugin.0, other.id)));
    Ok(grants)
}

/// When a grant was last used; what was used before it was given was another grant's.
fn last_use(uses: &GrantUses, grant: &GrantRecord) -> Option<i64> {
    let capability = grant.capability.to_string();
    let mut uses = uses.uses.iter();
    let of_grant = uses.find(|used| used.plugin == grant.plugin && used.capability == capability);
    of_grant.map(|used| used.used_at_ms)
}

impl GrantRow {
    /// Whether no use since then is known, and it was granted before.
    fn is_unused(&self, since_ms: i64) -> bool {
        let is_older = self.grant.granted_at_ms < since_ms;
        is_older
            && self
                .used_at_ms
                .is_none_or(|used_at_ms| used_at_ms < since_ms)
    }

    fn last(&self) -> String {
        match self.used_at_ms {
            Some(used_at_ms) => format!("last used {}", time::shown(used_at_ms)),
            None => "no use known".to_owned(),
        }
    }
}

impl Listing {
    /// What is not known.
    fn caveats(&self) -> Vec<String> {
        let is_short = self
            .unused_since_ms
            .is_some_and(|unused_ms| unused_ms < self.since_ms);
        let caveat = format!(
            "uses are known since {} only; what was used before that is not known",
            time::shown(self.since_ms)
        );
        is_short.then_some(caveat).into_iter().collect()
    }

    fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let mut members = display::members(display::grant_json(&row.grant));
            members.insert("plugin".to_owned(), json!(row.grant.plugin));
            members.insert("default".to_owned(), json!(row.grant.id == 0));
            members.insert(
                "last_used".to_owned(),
                json!(row.used_at_ms.map(time::shown)),
            );
            Value::Object(members)
        });
        json!({
            "known_since": time::shown(self.since_ms),
            "unused_since": self.unused_since_ms.map(time::shown),
            "grants": rows.collect::<Vec<_>>(),
            "notes": self.caveats(),
        })
    }

    fn page(&self) -> Page {
        let mut page = Page::new();
        if self.rows.is_empty() {
            page.line(
                0,
                match self.unused_since_ms {
                    Some(_) => "every grant that is as old was used",
                    None => "nothing is granted",
                },
            );
        }
        let mut last: Option<&PluginId> = None;
        for row in &self.rows {
            if last != Some(&row.grant.plugin) {
                last = Some(&row.grant.plugin);
                page.name(0, &row.grant.plugin.0, "");
            }
            let text = format!("{} · {}", display::grant(&row.grant), row.last());
            page.line(1, &text);
        }
        for command in self.revocations() {
            records::pasted(&mut page, 0, &command);
        }
        page
    }

    /// The commands that revoke what is listed as unused; default grants are revoked as a whole, which is for a person to think of.
    fn revocations(&self) -> Vec<String> {
        if self.unused_since_ms.is_none() {
            return Vec::new();
        }
        let mut plugins: Vec<&PluginId> = self.rows.iter().map(|row| &row.grant.plugin).collect();
        plugins.dedup();
        let commands = plugins.into_iter().filter_map(|plugin| {
            let mine = self.rows.iter().filter(|row| row.grant.plugin == *plugin);
            let ids = mine.filter(|row| row.grant.id != 0);
            let ids: Vec<String> = ids.map(|row| format!("--id {}", row.grant.id)).collect();
            let command = format!("{} plugin revoke {plugin} {}", self.program, ids.join(" "));
            (!ids.is_empty()).then_some(command)
        });
        commands.collect()
    }
}
