//! The values of variables and headers of one server: as they are written, and its own secrets.

use std::collections::BTreeMap;

use zeph_config::{CommandServer, ServerValue};
use zeph_core::execution::SecretValue;
use zeph_core::id::ServerName;
use zeph_shell::environment::is_secret;

use super::LaunchError;
use crate::known_secrets::KnownSecrets;

/// Variables that make the loader or an interpreter load other code than the program that is named.
const LOADERS: [&str; 21] = [
    "BASH_ENV",
    "CDPATH",
    "ENV",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "GLOBIGNORE",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "_JAVA_OPTIONS",
];

/// Beginnings of such names.
const LOADER_PREFIXES: [&str; 3] = ["BASH_FUNC_", "DYLD_", "LD_"];

/// Whether a variable makes a program load other code.
pub(crate) fn is_loader(name: &str) -> bool {
    let begins = LOADER_PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix));
    begins || LOADERS.contains(&name)
}

/// The variables of a server. What looks like a credential is removed from everything that is shown from now on.
///
/// Errors: one of them loads other code; a secret is not stored.
pub(super) fn environment(
    secrets: &KnownSecrets,
    name: &ServerName,
    server: &CommandServer,
) -> Result<BTreeMap<String, String>, LaunchError> {
    if let Some(variable) = server.environment.keys().find(|name| is_loader(name)) {
        return Err(LaunchError::Variable {
            server: name.clone(),
            variable: variable.clone(),
        });
    }
    let variables = of(secrets, name, &server.environment)?;
    let literal = server.environment.iter().filter_map(|(name, value)| {
        let ServerValue::Text(value) = value else {
            return None;
        };
        is_secret(name, value).then(|| SecretValue {
            name: name.clone(),
            value: value.clone(),
        })
    });
    secrets.learn(literal.collect());
    Ok(variables)
}

/// The values with those of secrets in their places.
///
/// Errors: a secret is not stored.
pub(super) fn of(
    secrets: &KnownSecrets,
    name: &ServerName,
    values: &BTreeMap<String, ServerValue>,
) -> Result<BTreeMap<String, String>, LaunchError> {
    let values = values.iter().map(|(key, value)| {
        let value = match value {
            ServerValue::Text(text) => text.clone(),
            ServerValue::Secret {
                name: secret,
                prefix,
            } => {
                let stored = secrets.value(secret);
                let stored = stored.ok_or_else(|| LaunchError::Secret {
                    server: name.clone(),
                    used_for: key.clone(),
                    secret: secret.clone(),
                    problem: secrets.problem(),
                })?;
                format!("{prefix}{stored}")
            }
        };
        Ok((key.clone(), value))
    });
    values.collect()
}
