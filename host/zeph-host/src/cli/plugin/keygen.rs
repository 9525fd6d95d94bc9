//! `zeph-host plugin keygen`: makes a key pair of minisign. Nothing that is there is overwritten.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use zeph_artifact::signature::secret::{PASSWORD_BYTES_MAX, Protection, SecretKey};
use zeph_plugins::manage::ManageError;

use super::display::{self, Page};
use crate::cli::args::PluginKeygen;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::hidden::{self, HiddenLine};
use crate::cli::out;

/// Rights of both files: a public key that others could exchange would be the wrong one in a configuration.
const FILE_MODE: u32 = 0o600;

/// Runs the command.
pub(super) fn run(context: &Context, options: &PluginKeygen) -> Result<Exit, CliError> {
    let secret = context.surroundings.working_directory.join(&options.file);
    let public = secret.with_extension("pub");
    if public == secret {
        let problem = "the name of a secret key does not end in `.pub`, which is its public key";
        return Err(CliError::user(problem));
    }
    // Before a password is typed for nothing.
    for file in [&secret, &public] {
        if fs::symlink_metadata(file).is_ok() {
            return Err(exists(file));
        }
    }
    let password = match options.no_password {
        true => None,
        false => match new_password()? {
            Some(password) => Some(password),
            None => {
                out::remark("no key was made");
                return Ok(Exit::Failure);
            }
        },
    };
    let protection = match &password {
        Some(password) => Protection::Password(password),
        None => Protection::None,
    };
    let key = SecretKey::generate().map_err(failed)?;
    let text = key.to_file(protection).map_err(failed)?;
    create(&secret, &text)?;
    if let Err(error) = create(&public, &key.public_file()) {
        // Half a pair is of no use, and would be in the way of the next try.
        drop(fs::remove_file(&secret));
        return Err(error);
    }
    print(
        &key,
        (&secret, &public),
        password.is_some(),
        options.json.json,
    )?;
    Ok(Exit::Success)
}

fn failed(error: zeph_artifact::signature::secret::BadSecretKey) -> CliError {
    CliError::internal("no key can be made").because(error)
}

fn exists(file: &Path) -> CliError {
    CliError::user(format!(
        "`{}` exists, and a key is never overwritten",
        file.display()
    ))
    .hint("name another file, or move it away")
}

/// A password, typed twice; none when the user gave up.
fn new_password() -> Result<Option<String>, CliError> {
    if !io::stdin().is_terminal() {
        return Err(CliError::user("there is no terminal to type a password at")
            .hint("`--no-password` makes a key that only the rights of its file protect"));
    }
    let Some(password) = typed("Password of the new key (not shown): ")? else {
        return Ok(None);
    };
    if password.is_empty() || password.len() > PASSWORD_BYTES_MAX {
        return Err(
            CliError::user(format!("a password has 1 to {PASSWORD_BYTES_MAX} bytes"))
                .hint("`--no-password` makes a key without one"),
        );
    }
    match typed("Once more: ")? {
        Some(again) if again == password => Ok(Some(password)),
        Some(_) => Err(CliError::user(
            "the two passwords are not the same; no key was made",
        )),
        None => Ok(None),
    }
}

pub(super) fn typed(question: &str) -> Result<Option<String>, CliError> {
    match hidden::ask(question).map_err(CliError::terminal)? {
        HiddenLine::Typed(line) => Ok(Some(line)),
        HiddenLine::GivenUp => Ok(None),
    }
}

/// Writes a file that is not there yet.
fn create(file: &Path, text: &str) -> Result<(), CliError> {
    let opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(file);
    let written = match opened {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(exists(file)),
        opened => opened.and_then(|opened| whole(opened, file, text)),
    };
    written.map_err(|source| {
        let path = file.to_owned();
        let operation = "write";
        CliError::from(ManageError::File {
            operation,
            path,
            source,
        })
    })
}

fn whole(mut opened: File, file: &Path, text: &str) -> io::Result<()> {
    let written = opened
        .write_all(text.as_bytes())
        .and_then(|()| opened.sync_all());
    written.inspect_err(|_| drop(fs::remove_file(file)))
}

fn print(
    key: &SecretKey,
    (secret, public): (&PathBuf, &PathBuf),
    is_encrypted: bool,
    json: bool,
) -> Result<(), CliError> {
    let line = key.public().to_text();
    if json {
        return display::print_json(&json!({
            "secret_key": secret,
            "public_key": public,
            "encrypted": is_encrypted,
            "key": line,
        }));
    }
    let mut page = Page::new();
    page.field("secret key", Some(&secret.to_string_lossy()));
    page.field("public key", Some(&public.to_string_lossy()));
    page.field("key", Some(&key.public().to_string()));
    page.head("TO ACCEPT WHAT IT SIGNS, IN THE CONFIGURATION");
    page.line(1, "[[plugins.trust.signers]]");
    page.line(1, "name = \"NAME\"");
    page.line(1, &format!("key = \"{line}\""));
    page.line(1, "offers = [\"file:*\"]");
    page.print()
}
