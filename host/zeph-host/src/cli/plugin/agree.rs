//! `zeph-host plugin approve` for a plugin that nobody signed and that was never accepted: shows what it is, asks, and pins it.

use serde_json::json;
use zeph_plugins::diff::{UpdateRisk, yanked_warning};
use zeph_plugins::keeper::locked;
use zeph_plugins::manage::approval;
use zeph_plugins::set::PluginStanding;

use super::display::{self, Page};
use super::{consent, indexes, verify};
use crate::cli::args::{Consent, PluginApprove};
use crate::cli::ask::accepted;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::clock::now_ms;
use crate::host::Host;
use crate::run::catalog;

/// Asks about a plugin that waits for nothing but its operator's agreement.
pub(super) async fn run(
    context: &Context,
    host: &Host,
    standing: &PluginStanding,
    typed: &PluginApprove,
) -> Result<Exit, CliError> {
    let options = &typed.plugin;
    let name = &standing.name;
    let json = options.json.json;
    let yanked = yanked(context, host, standing).await?;
    if !json {
        page(standing, yanked.as_deref()).print()?;
    }
    let command = format!("zeph-host plugin approve {name}");
    let subject = format!("plugin `{name}`, which is not signed,");
    let is_agreed = match yanked {
        None => accepted((&subject, "plugin"), &command, (json, options.yes)),
        Some(_) => {
            let consent = Consent {
                yes: options.yes,
                accept: typed.accept.clone(),
            };
            let question = format!("Accept {subject} as it is now?");
            consent::given((&question, &command), &consent, json, &[UpdateRisk::Yanked])
        }
    };
    if is_agreed {
        let folder = &host.config().plugins.folders[standing.folder_idx];
        approval::agree(standing, folder, now_ms())?;
    }
    match (json, is_agreed) {
        (true, _) => display::print_json(&json!({
            "name": name,
            "changed": true,
            "approved": is_agreed,
            "signature": standing.signature.as_ref().map(verify::signature_json),
        }))?,
        (false, true) => Page::new()
            .head(&format!("plugin `{name}` is approved"))
            .print()?,
        (false, false) => {}
    }
    Ok(match is_agreed {
        true => Exit::Success,
        false => Exit::Confirm,
    })
}

/// That its publisher withdrew it, if it did.
async fn yanked(
    context: &Context,
    host: &Host,
    standing: &PluginStanding,
) -> Result<Option<String>, CliError> {
    let Some(good) = &standing.good else {
        return Ok(None);
    };
    let indexes = indexes::usable(context, host.config()).await?;
    let said = good.version();
    let yanked = indexes::yanked(&indexes, &locked(&standing.path, good, now_ms()), said);
    Ok(yanked.map(|reason| yanked_warning(&reason)))
}

fn page(standing: &PluginStanding, yanked: Option<&str>) -> Page {
    let mut page = Page::new();
    page.name(
        0,
        &standing.name.0,
        "was never accepted, and no known signer signed it",
    );
    if let Some(warning) = yanked {
        page.line(1, warning);
    }
    page.field("file", Some(&standing.path.to_string_lossy()));
    let Some(good) = &standing.good else {
        return page;
    };
    page.field("digest", Some(&good.pin.wasm.to_string()));
    if let Some(signature) = &standing.signature {
        page.field("signed by", Some(&verify::signature_text(signature)));
    }
    for tool in good.plugin.tools() {
        page.name(1, tool.name.as_str(), catalog::effect(tool));
        page.text(2, &tool.description);
    }
    for want in &good.manifest.wants {
        page.line(1, &format!("requests {}: {}", want.capability, want.reason));
    }
    page
}
