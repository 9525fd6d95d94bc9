//! Who the operator is to a registry: the files of docker, podman and wkg, which are read and never written.
//!
//! A credential helper (`credsStore`, `credHelpers`) is a program; it is never run here. Where a registry wants credentials that only a
//! helper has, the message says so, and where to write them instead.

mod docker;
mod wkg;

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::HeaderValue;

use crate::reference::RegistryHost;

/// Most bytes of a file with credentials.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Base 64 with or without padding: both files are written by hand, too.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Where credentials are looked for. They need not exist.
#[derive(Debug, Clone, Default)]
pub struct CredentialFiles {
    /// The configuration of wkg, `wasm-pkg/config.toml`. Asked first.
    pub wkg: Option<PathBuf>,
    /// The configuration of docker, `config.json`.
    pub docker: Option<PathBuf>,
    /// What podman and its like keep, `containers/auth.json`. Asked last.
    pub podman: Option<PathBuf>,
}

/// What a registry is told. Nothing of it is ever printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Credential {
    /// A user and a password or access token.
    Basic {
        /// Without `:`.
        user: String,
        /// The password.
        password: String,
    },
    /// A refresh token, for the token service of the registry alone.
    Identity(String),
}

/// What the files say about a registry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Lookup {
    /// Its credentials.
    Known(Credential),
    /// They are kept by a program.
    Helper(String),
    /// Nothing.
    #[default]
    None,
}

/// A file with credentials that cannot be used. Its content is not repeated.
#[derive(Debug, thiserror::Error)]
#[error("the credentials in `{}` cannot be used: {why}", path.display())]
pub struct BadCredentials {
    /// The file.
    path: PathBuf,
    /// What is wrong.
    why: String,
}

impl CredentialFiles {
    /// The credentials for a repository of a registry, from the first file that has some.
    ///
    /// Errors: a file that exists and cannot be read.
    pub(crate) fn of(
        &self,
        registry: &RegistryHost,
        repository: &str,
    ) -> Result<Lookup, BadCredentials> {
        let of_wkg = look_up(self.wkg.as_deref(), |text| wkg::lookup(text, registry))?;
        if of_wkg != Lookup::None {
            return Ok(of_wkg);
        }
        // A helper that docker names may have nothing for this registry: what stands in the other file counts then.
        let mut helper = Lookup::None;
        for path in [&self.docker, &self.podman] {
            let known = look_up(path.as_deref(), |text| {
                docker::lookup(text, registry, repository)
            })?;
            match known {
                Lookup::None => {}
                Lookup::Helper(name) if helper == Lookup::None => helper = Lookup::Helper(name),
                Lookup::Helper(_) => {}
                known => return Ok(known),
            }
        }
        Ok(helper)
    }
}

/// What wkg is told about registries; nothing where there is no such file.
pub(crate) fn wkg_file(path: Option<&Path>) -> Result<wkg::File, BadCredentials> {
    look_up(path, wkg::parse)
}

fn look_up<T: Default>(
    path: Option<&Path>,
    lookup: impl Fn(&str) -> Result<T, String>,
) -> Result<T, BadCredentials> {
    let Some(path) = path else {
        return Ok(T::default());
    };
    let bad = |why: String| BadCredentials {
        path: path.to_owned(),
        why,
    };
    match text(path) {
        Ok(text) => lookup(&text).map_err(bad),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(bad(error.to_string())),
    }
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(path)?;
    let n_bytes = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)? as u64;
    match n_bytes > FILE_BYTES_MAX {
        true => Err(io::Error::other("it has more than 1 MiB")),
        false => Ok(text),
    }
}

impl Credential {
    /// From `user:password` in base 64.
    fn decoded(text: &str) -> Option<Self> {
        let bytes = BASE64.decode(text.trim()).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (user, password) = text.split_once(':')?;
        // Some versions of docker end it with a zero byte.
        let password = password.trim_end_matches('\0');
        (!user.is_empty()).then(|| Self::Basic {
            user: user.to_owned(),
            password: password.to_owned(),
        })
    }

    /// As the value of `Authorization`; none for a refresh token, which is no such value.
    pub(crate) fn basic(&self) -> Option<HeaderValue> {
        let Self::Basic { user, password } = self else {
            return None;
        };
        let encoded = BASE64.encode(format!("{user}:{password}"));
        let mut value = HeaderValue::from_str(&format!("Basic {encoded}")).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(…)")
    }
}

#[cfg(test)]
mod tests;
