//! What was typed, as it was typed.

use zeph_core::capability::{FsRights, LimitName};
use zeph_core::failure::one_line;
use zeph_core::network::{BadHostAccess, HostAccess};
use zeph_core::secret::SecretUse;

use crate::manage::ManageError;

/// One thing that was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedItem {
    /// `PATH[:RIGHTS]`
    Directory {
        /// As it was typed.
        path: String,
        /// All that are wanted there when none were typed.
        rights: Option<FsRights>,
        /// Why what looks like rights is none.
        problem: Option<String>,
    },
    /// Hosts of the network. No methods: all that are wanted there.
    Host(HostAccess),
    /// A program, and perhaps what its arguments may be.
    Program(String),
    /// A variable of the environment.
    Variable(String),
    /// A provider of embeddings.
    Embedder(String),
    /// A tool of an MCP server: `SERVER/TOOL`.
    Tool(String),
    /// `NAME[=VALUE]`
    Limit {
        /// Which limit.
        name: LimitName,
        /// What is wanted when none was typed.
        value: Option<u64>,
    },
    /// `NAME[=HOST:HEADER[:METHODS]]`
    Secret {
        /// Which secret.
        name: String,
        /// Where it is sent; wherever it is wanted when nothing was typed.
        used: Option<SecretUse>,
    },
}

impl RequestedItem {
    /// Reads `PATH[:RIGHTS]`. What stands behind the last colon belongs to the path unless it is rights.
    pub fn directory(text: &str) -> Self {
        let split = text.rsplit_once(':');
        let (path, rights, problem) = match split.map(|(path, rights)| (path, rights.parse())) {
            Some((path, Ok(rights))) => (path, Some(rights), None),
            Some((_, Err(error))) => (text, None, Some(format!("{error}"))),
            None => (text, None, None),
        };
        Self::Directory {
            path: path.to_owned(),
            rights,
            problem,
        }
    }

    /// Reads `[http://]HOST[:PORT][:METHODS]`.
    ///
    /// Errors: `BadSelector`.
    pub fn host(text: &str) -> Result<Self, ManageError> {
        let access: HostAccess = text
            .parse()
            .map_err(|error: BadHostAccess| ManageError::BadSelector(error.to_string()))?;
        match access.name.is_whatever_is_granted() {
            true => Err(ManageError::BadSelector(
                "`*:*` is only for manifests; name a host, or `*` for every public host on port 443"
                    .to_owned(),
            )),
            false => Ok(Self::Host(access)),
        }
    }

    /// Reads `NAME[=VALUE]`.
    ///
    /// Errors: `BadSelector`.
    pub fn limit(text: &str) -> Result<Self, ManageError> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let names = || LimitName::ALL.map(LimitName::as_str).join(", ");
        let name: LimitName = name.parse().map_err(|_| {
            let name = one_line(name, 60);
            ManageError::BadSelector(format!("`{name}` is not a limit; there are {}", names()))
        })?;
        let value = match value.map(str::parse) {
            None => None,
            Some(Ok(value)) => Some(value),
            Some(Err(_)) => {
                let problem = format!("`{name}` takes a whole number, such as `{name}=100`");
                return Err(ManageError::BadSelector(problem));
            }
        };
        Ok(Self::Limit { name, value })
    }

    /// Reads `NAME[=HOST:HEADER[:METHODS]]`.
    ///
    /// Errors: `BadSelector`.
    pub fn secret(text: &str) -> Result<Self, ManageError> {
        let used = text.contains('=').then(|| text.parse::<SecretUse>());
        let used = used
            .transpose()
            .map_err(|error| ManageError::BadSelector(error.to_string()))?;
        let name = used.as_ref().map_or(text, |used| &used.name).to_owned();
        match zeph_core::secret::is_name(&name) {
            true => Ok(Self::Secret { name, used }),
            false => Err(ManageError::BadSelector(format!(
                "`{}` cannot name a secret: a name has 1 to 64 of `A-Z a-z 0-9 _ -`",
                one_line(&name, 70)
            ))),
        }
    }
}
