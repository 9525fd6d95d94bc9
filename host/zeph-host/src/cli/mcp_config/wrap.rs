//! `mcp-config CLIENT --wrap`: the servers in a client's file, started through `zeph-host wrap` from now on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use similar::TextDiff;
use zeph_config::Config;
use zeph_core::execution::SecretValue;
use zeph_core::id::{Digest, ServerName};
use zeph_core::redact::Redactor;
use zeph_filter::Secrets;
use zeph_mcp::clients::{
    Client, MovedSecret, StartDirectory, Wrapped, WrappedFile, Wrapper, is_host,
};
use zeph_plugins::lock::Lock;
use zeph_plugins::refusal::quoted;
use zeph_shell::environment;
use zeph_store::SecretFolder;

use super::file::{Backup, ConfigFile, Written};
use super::{no_project, open, program, refused, roots, settings, unicode};
use crate::cli::args::McpConfig;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::{out, secret};
use crate::clock::now_ms;
use crate::known_secrets;
use crate::run::render::escape;
use crate::servers::{launch, reserved};

/// Lines around each difference.
const CONTEXT_LINES: usize = 3;

/// Hexadecimal digits by which a copy is told from others.
const DIGEST_DIGITS: usize = 12;

/// What is pinned under a name.
type PinnedLaunch<'a> = &'a dyn Fn(&str) -> Option<Vec<String>>;

/// Runs the command.
pub(super) fn run(
    context: &Context,
    client: &Client,
    options: &McpConfig,
) -> Result<Exit, CliError> {
    let file = open(context, client, options.file.as_deref())?;
    let config = context.config()?;
    let folder = known_secrets::folder(&config);
    let lock = config.mcp_lock.as_deref().map(Lock::read).transpose();
    let lock = lock.map_err(|error| CliError::user(error.told()))?;
    let pinned = |name: &str| pinned(&config, lock.as_ref(), name);
    let wrapped = wrapped(context, client, &file, (folder.as_ref(), &pinned))?;
    if wrapped.text == file.text {
        notes(context, &wrapped, false);
        context.notes(&[file.unchanged("there is nothing to wrap")]);
        return Ok(Exit::Success);
    }
    match options.write {
        true => {
            reserve(&config, &wrapped)?;
            write(context, (client, options), &file, &wrapped, folder.as_ref())
        }
        false => {
            notes(context, &wrapped, false);
            context.notes(&["nothing was changed; --write changes the file".to_owned()]);
            out::data(&escape(&difference(&file, &wrapped)))
        }
    }?;
    Ok(Exit::Success)
}

fn wrapped(
    context: &Context,
    client: &Client,
    file: &ConfigFile,
    (folder, pinned): (Option<&SecretFolder>, PinnedLaunch<'_>),
) -> Result<WrappedFile, CliError> {
    let (secrets, _) = Secrets::new(&[]);
    let is_secret = |name: &str, value: &str| is_secret(&secrets, name, value);
    let home = context.surroundings.home.as_deref();
    let readable = |args: &[String]| readable(home, args);
    let program = unicode(program()?)?;
    if !is_host(&program) {
        return Err(CliError::user(format!(
            "this program is `{program}`; under that name, what it wraps is not recognised as wrapped"
        ))
        .hint("start it as `zeph-host`, or make a link of that name to it on the search path"));
    }
    let wrapper = Wrapper {
        program: &program,
        options: &options(context, client)?,
        is_secret: &is_secret,
        readable: &readable,
        pinned,
        loads_code: &launch::is_loader,
        stored: stored(folder)?,
    };
    let wrapped = client.wrap(&file.text, &wrapper);
    wrapped.map_err(|error| refused(&error, &file.path, ""))
}

/// Options of every server. Without a root, a server may read the directory in which the client starts it; of a client that starts it
/// anywhere, nothing.
fn options(context: &Context, client: &Client) -> Result<Vec<String>, CliError> {
    let mut options = settings(context)?;
    let is_known = client.starts_in != StartDirectory::Unknown;
    if is_known || !context.flags.roots.is_empty() {
        options.extend(roots(context, client)?);
    }
    options.extend(no_project(context));
    Ok(options)
}

/// What is pinned under the name of a server, or what the name was given for when nothing is.
fn pinned(config: &Config, lock: Option<&Lock>, name: &str) -> Option<Vec<String>> {
    let name = name.parse().ok()?;
    let server = lock.and_then(|lock| lock.server(&name));
    let launch = server.map(|server| server.launch.clone());
    launch.or_else(|| reserved::of(config, &name))
}

/// Keeps the names for what they were given, until the servers run and are pinned.
fn reserve(config: &Config, wrapped: &WrappedFile) -> Result<(), CliError> {
    for (_, wrapped) in &wrapped.servers {
        let Wrapped::Changed(server) = wrapped else {
            continue;
        };
        let name: Result<ServerName, _> = server.name.parse();
        let Ok(name) = name else {
            continue;
        };
        reserved::keep(config, &name, &server.launch, now_ms()).map_err(|why| {
            CliError::internal(format!("the name `{name}` cannot be kept for a server")).hint(why)
        })?;
    }
    Ok(())
}

fn stored(folder: Option<&SecretFolder>) -> Result<BTreeMap<String, String>, CliError> {
    let stored = folder.map(SecretFolder::read).transpose();
    let stored = stored.map_err(secret::failed)?.unwrap_or_default();
    let pairs = stored.into_iter().map(|one| (one.name, one.value));
    Ok(pairs.collect())
}

/// Whether a literal value is a secret: by its name or its shape. Switches, numbers and paths are none, whatever their name.
fn is_secret(secrets: &Secrets, name: &str, value: &str) -> bool {
    let is_path = value.starts_with(['/', '.', '~']);
    let is_setting = value.is_empty()
        || value.parse::<f64>().is_ok()
        || matches!(value.to_ascii_lowercase().as_str(), "true" | "false");
    if is_path || is_setting {
        return false;
    }
    let assignment = format!("{name}={value}");
    environment::is_secret(name, value) || !secrets.scan(assignment.as_bytes()).is_empty()
}

/// Directories among the arguments of a server: its user meant it to work there. Never a directory that everything else is in.
fn readable(home: Option<&Path>, args: &[String]) -> Vec<String> {
    let is_one = |arg: &&String| {
        let path = Path::new(arg.as_str());
        let real = path.canonicalize().ok().filter(|real| real.is_dir());
        let holds_home = |real: &PathBuf| home.is_some_and(|home| home.starts_with(real));
        path.is_absolute() && real.is_some_and(|real| !holds_home(&real))
    };
    args.iter().filter(is_one).cloned().collect()
}

/// The difference as `diff -u` prints it, without the values that are moved.
fn difference(file: &ConfigFile, wrapped: &WrappedFile) -> String {
    let path = file.path.display().to_string();
    let diff = TextDiff::from_lines(file.text.as_str(), wrapped.text.as_str());
    let mut unified = diff.unified_diff();
    let unified = unified.context_radius(CONTEXT_LINES).header(&path, &path);
    let secrets = moved(wrapped).map(|secret| SecretValue {
        name: secret.name.clone(),
        value: secret.value.clone(),
    });
    let redactor = Redactor::new(&secrets.collect::<Vec<_>>());
    redactor.text(&unified.to_string()).into_owned()
}

fn moved(wrapped: &WrappedFile) -> impl Iterator<Item = &MovedSecret> {
    let servers = wrapped.servers.iter();
    servers.flat_map(|(_, wrapped)| match wrapped {
        Wrapped::Changed(server) => server.secrets.as_slice(),
        Wrapped::Unchanged(_) => &[],
    })
}

/// What becomes of each server, or has become.
fn notes(context: &Context, wrapped: &WrappedFile, is_done: bool) {
    for (name, wrapped) in &wrapped.servers {
        let server = match wrapped {
            Wrapped::Changed(server) => server,
            Wrapped::Unchanged(why) => {
                context.notes(&[format!("`{name}` is not wrapped: {why}")]);
                continue;
            }
        };
        if is_done {
            let known = &server.name;
            context.notes(&[match &server.instead_of {
                None => format!("`{name}` is wrapped, as `{known}`"),
                Some(other) => format!(
                    "`{name}` is wrapped, as `{known}`: `{other}` is the name of another server, which started or was wrapped before"
                ),
            }]);
        }
        for folder in &server.readable {
            let note = format!(
                "`{name}`: may read `{folder}`, which its arguments name; to let it write there, change --allow-read to --allow-write"
            );
            context.notes(&[note]);
        }
        for MovedSecret {
            variable,
            name: secret,
            ..
        } in &server.secrets
        {
            let done = if is_done { "was" } else { "is" };
            context.notes(&[format!(
                "`{name}`: the value of `{variable}` {done} moved to the secret `{secret}`"
            )]);
        }
        for place in &server.exposed {
            context.notes(&[format!(
                "`{name}`: {place} looks like a secret and stays in the file"
            )]);
        }
    }
}

fn write(
    context: &Context,
    (client, options): (&Client, &McpConfig),
    file: &ConfigFile,
    wrapped: &WrappedFile,
    folder: Option<&SecretFolder>,
) -> Result<(), CliError> {
    let set = keep(wrapped, folder)?;
    let backup = backup_of(&file.path, &wrapped.text);
    let written = file.replace(&wrapped.text, Backup::At(&backup));
    if let (Err(_), Some(folder)) = (&written, folder) {
        // The values are still in the file.
        set.iter().for_each(|name| drop(folder.remove(name)));
    }
    if let Written::Changed { .. } = written? {
        notes(context, wrapped, true);
        let path = file.path.display();
        let named = options.file.as_ref();
        let named = named.map_or_else(String::new, |_| {
            format!(" --file {}", quoted(&path.to_string()))
        });
        context.notes(&[format!(
            "{}: `{path}` is changed; `{}` is the file as it was, secrets included: `zeph-host mcp-config {}{named} --unwrap` puts it back",
            client.title,
            backup.display(),
            client.name,
        )]);
    }
    Ok(())
}

/// Stores the values that are moved. Returns the names that are new.
fn keep(wrapped: &WrappedFile, folder: Option<&SecretFolder>) -> Result<Vec<String>, CliError> {
    let mut names = Vec::new();
    let known = stored(folder)?;
    for secret in moved(wrapped).filter(|secret| !known.contains_key(&secret.name)) {
        let folder = folder.ok_or_else(secret::no_folder)?;
        folder
            .set(&secret.name, &secret.value, now_ms())
            .map_err(secret::failed)?;
        names.push(secret.name.clone());
    }
    Ok(names)
}

/// Where the file is kept that became `wrapped`.
pub(super) fn backup_of(path: &Path, wrapped: &str) -> PathBuf {
    let digest = Digest::new(Sha256::digest(wrapped).into()).hex();
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!("{MARK}{}{END}", &digest[..DIGEST_DIGITS]));
    path.with_file_name(name)
}

/// What stands in the name of a copy behind the name of the file.
pub(super) const MARK: &str = ".wrapped-";

/// What the name of a copy ends in.
pub(super) const END: &str = ".bak";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_the_name_or_the_shape_of_one() {
        let (secrets, _) = Secrets::new(&[]);
        for (name, value) in [
            ("GITHUB_PERSONAL_ACCESS_TOKEN", "whatever-it-is"),
            ("DB_PASSWORD", "correct horse"),
            ("X", "ghp_0123456789abcdefghijABCDEFGHIJ012345"),
            ("DATABASE_URL", "postgres://me:s3cret-pw@db.example.com/x"),
            ("argument", "--api-key=k9Fw2mQ8zX4pL7vB"),
        ] {
            assert!(is_secret(&secrets, name, value), "{name}={value}");
        }
        for (name, value) in [
            ("MAX_TOKENS", "4096"),
            ("USE_AUTH", "true"),
            ("SSH_KEY", "/home/me/.ssh/id"),
            ("API_URL", "https://api.example.com/v1"),
            ("argument", "-y"),
            ("argument", "@scope/server-files"),
        ] {
            assert!(!is_secret(&secrets, name, value), "{name}={value}");
        }
    }

    #[test]
    fn a_directory_with_everything_in_it_is_not_readable() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let inner = real.join("home/notes");
        std::fs::create_dir_all(&inner).unwrap();
        let home = real.join("home");
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let args = [
            "-y",
            "notes",
            "/",
            &text(&real),
            &text(&home),
            &text(&inner),
        ];
        let args = args.map(str::to_owned);
        assert_eq!(readable(Some(&home), &args), [text(&inner)]);
    }
}
