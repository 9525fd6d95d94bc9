//! `zeph-host plugin disable` and `enable`: whether the tools of a plugin are offered. Running hosts follow.

use serde_json::json;
use zeph_config::Config;
use zeph_plugins::manage::forget::{self, Switch, SwitchResult};
use zeph_plugins::manage::names::{self, KnownPlugin};

use super::display::{self, Page};
use crate::cli::args::PluginName;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;

/// Runs the command.
pub(super) fn run(context: &Context, options: &PluginName, to: Switch) -> Result<Exit, CliError> {
    let config = context.config()?;
    let known = find(context, &config, &options.name)?;
    let known = match known.locked {
        Some(_) => known,
        None => {
            // It lies there and no host has looked at it yet: one that does pins it.
            let start = config.clone();
            context::block_on(async { super::settled(context, start).await.map(drop) })?;
            find(context, &config, &options.name)?
        }
    };
    let switched = forget::switch(&known, to)?;
    print(&known, to, switched, options.json.json)?;
    Ok(Exit::Success)
}

fn find(context: &Context, config: &Config, name: &str) -> Result<KnownPlugin, CliError> {
    let known = names::removable(&config.plugins.typed_first())?;
    Ok(names::find(&known, name, &context.first_party())?.clone())
}

fn print(
    known: &KnownPlugin,
    to: Switch,
    switched: SwitchResult,
    json: bool,
) -> Result<(), CliError> {
    let name = &known.name;
    let is_off = to == Switch::Off;
    if json {
        return display::print_json(&json!({
            "name": name,
            "disabled": is_off,
            "changed": switched == SwitchResult::Now,
        }));
    }
    let on_or_off = if is_off { "off" } else { "on" };
    let mut page = Page::new();
    match switched {
        SwitchResult::Now => page.line(0, &format!("plugin `{name}` is switched {on_or_off}")),
        SwitchResult::Already => page.line(0, &format!("plugin `{name}` was {on_or_off} already")),
    };
    page.print()
}
