//! `zeph-host secret`: values that plugins can use and never read.

use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Read as _};
use std::path::Path;

use serde_json::{Value, json};
use zeph_config::Config;
use zeph_core::capability::Capability;
use zeph_core::failure::one_line;
use zeph_core::secret::{SecretUse, VALUE_BYTES_MAX, is_name, value_problem};
use zeph_store::{GrantRecord, SecretFolder, SecretPlace, SecretRecord, SecretsError, Store};

use super::args::{Secret, SecretCommand};
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::hidden::{self, HiddenLine};
use super::{out, time};
use crate::clock::now_ms;
use crate::known_secrets;
use crate::run::table;

/// Runs the command.
pub(super) fn run(context: &Context, options: Secret) -> Result<Exit, CliError> {
    let config = context.config()?;
    let folder = folder(&config)?;
    match options.command {
        Some(SecretCommand::Set { name }) => set(&folder, &name),
        Some(SecretCommand::Rm { name, json }) => {
            let granted = granted(&context.store(&config)?)?;
            remove(&folder, &name, &granted, json.json)
        }
        Some(SecretCommand::List { json }) => list(context, &config, &folder, json.json),
        None => list(context, &config, &folder, options.json.json),
    }
}

fn folder(config: &Config) -> Result<SecretFolder, CliError> {
    known_secrets::folder(config).ok_or_else(no_folder)
}

/// The names of the stored secrets; none where they cannot be read.
pub(super) fn names(config: &Config) -> Vec<String> {
    let records = known_secrets::folder(config).and_then(|folder| folder.list().ok());
    let names = records.into_iter().flatten().map(|record| record.name);
    names.collect()
}

/// Nothing is kept by this host.
pub(super) fn no_folder() -> CliError {
    CliError::user("there is no place to keep a secret in")
        .hint("set `store.path` to a file; it is `:memory:`")
}

fn set(folder: &SecretFolder, name: &str) -> Result<Exit, CliError> {
    if !is_name(name) {
        let name = one_line(name, 70);
        return Err(CliError::user(format!("`{name}` cannot name a secret"))
            .hint("a name has 1 to 64 of `A-Z a-z 0-9 _ -`"));
    }
    let Some(value) = value(name)? else {
        out::remark("nothing was set");
        return Ok(Exit::Failure);
    };
    if let Some(problem) = value_problem(&value) {
        return Err(CliError::user(format!("the value is not used: {problem}")));
    }
    let set = folder.set(name, &value, now_ms()).map_err(failed)?;
    let what = match set.has_replaced {
        true => "replaced",
        false => "set",
    };
    let place = match set.place {
        SecretPlace::File => format!("`{}`", folder.file().display()),
        SecretPlace::Keyring => "the keyring of the operating system".to_owned(),
    };
    out::remark(&format!("secret `{name}` is {what}, in {place}"));
    Ok(Exit::Success)
}

/// The value, from a prompt or from standard input; `None` when the user gave up.
fn value(name: &str) -> Result<Option<String>, CliError> {
    if io::stdin().is_terminal() {
        let asked = hidden::ask(&format!("Value of `{name}` (not shown): "));
        return match asked.map_err(CliError::terminal)? {
            HiddenLine::Typed(value) => Ok(Some(value)),
            HiddenLine::GivenUp => Ok(None),
        };
    }
    let mut bytes = Vec::new();
    let mut reader = BufReader::new(io::stdin().lock());
    let read = (&mut reader)
        .take(VALUE_BYTES_MAX as u64 + 3)
        .read_until(b'\n', &mut bytes);
    read.map_err(|error| CliError::internal("standard input cannot be read").because(error))?;
    if !reader.buffer().is_empty() && bytes.ends_with(b"\n") {
        let problem = "standard input has more than one line; a secret is one line";
        return Err(CliError::user(problem));
    }
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        return Err(CliError::user("no value was given")
            .hint("type it on a terminal, or write one line to standard input"));
    }
    let text = String::from_utf8(line.to_vec());
    text.map(Some)
        .map_err(|_| CliError::user("the value is not text"))
}

/// A grant of the use of a secret.
struct GrantedUse {
    grant: GrantRecord,
    used: SecretUse,
}

fn granted(store: &Store) -> Result<Vec<GrantedUse>, CliError> {
    let grants = context::block_on(async { Ok(store.list_grants(None).await?) })?;
    let used = grants.into_iter().filter_map(|grant| {
        let Capability::Secret(used) = grant.capability.clone() else {
            return None;
        };
        Some(GrantedUse { grant, used })
    });
    Ok(used.collect())
}

fn remove(
    folder: &SecretFolder,
    name: &str,
    granted: &[GrantedUse],
    json: bool,
) -> Result<Exit, CliError> {
    if !folder.remove(name).map_err(failed)? {
        let shown = one_line(name, 70);
        return Err(CliError::user(format!("there is no secret `{shown}`"))
            .hint("`zeph-host secret` lists them"));
    }
    let broken: Vec<&GrantedUse> = granted.iter().filter(|one| one.used.name == name).collect();
    if json {
        out::json(&json!({ "name": name, "plugins": uses_json(&broken) }))?;
        return Ok(Exit::Success);
    }
    out::remark(&format!("secret `{name}` is removed"));
    for GrantedUse { grant, used } in broken {
        out::note(&format!(
            "plugin `{}` can no longer send it to `{}`; `zeph-host plugin revoke {} --id {}` revokes that grant, too",
            grant.plugin, used.host, grant.plugin, grant.id
        ));
    }
    Ok(Exit::Success)
}

fn list(
    context: &Context,
    config: &Config,
    folder: &SecretFolder,
    json: bool,
) -> Result<Exit, CliError> {
    let secrets = folder.list().map_err(failed)?;
    let granted = granted(&context.store_to_look(config)?)?;
    let uses = |secret: &SecretRecord| -> Vec<&GrantedUse> {
        let granted = granted.iter();
        granted.filter(|one| one.used.name == secret.name).collect()
    };
    match json {
        true => out::json(
            &secrets
                .iter()
                .map(|secret| as_json(secret, &folder.file(), &uses(secret)))
                .collect::<Vec<Value>>(),
        ),
        false => {
            let rows: Vec<[String; 4]> = secrets
                .iter()
                .map(|secret| row(secret, &uses(secret)))
                .collect();
            out::styled(&table::render(
                ["NAME", "KEPT IN", "CREATED", "USED BY"],
                &rows,
                None,
            ))
        }
    }?;
    Ok(Exit::Success)
}

fn as_json(secret: &SecretRecord, file: &Path, uses: &[&GrantedUse]) -> Value {
    json!({
        "name": secret.name,
        "kept_in": place(secret),
        "file": (secret.place == SecretPlace::File).then_some(file),
        "created": time::shown(secret.created_at_ms),
        "plugins": uses_json(uses),
    })
}

fn uses_json(uses: &[&GrantedUse]) -> Value {
    let uses = uses.iter().map(|GrantedUse { grant, used }| {
        json!({
            "plugin": grant.plugin,
            "id": grant.id,
            "host": used.host,
            "header": used.header,
            "methods": used.methods,
        })
    });
    uses.collect()
}

fn place(secret: &SecretRecord) -> &'static str {
    match secret.place {
        SecretPlace::File => "file",
        SecretPlace::Keyring => "keyring",
    }
}

fn row(secret: &SecretRecord, uses: &[&GrantedUse]) -> [String; 4] {
    let uses = uses
        .iter()
        .map(|GrantedUse { grant, used }| format!("{} ({})", grant.plugin, used.host));
    let uses: Vec<String> = uses.collect();
    [
        secret.name.clone(),
        place(secret).to_owned(),
        time::shown(secret.created_at_ms),
        match uses.is_empty() {
            true => "-".to_owned(),
            false => uses.join(", "),
        },
    ]
}

/// The stored secrets cannot be read or changed.
pub(super) fn failed(error: SecretsError) -> CliError {
    let hint = error.hint();
    let failed = CliError::internal(error.to_string());
    let failed = match hint {
        Some(hint) => failed.hint(hint),
        None => failed,
    };
    failed.because(error)
}
