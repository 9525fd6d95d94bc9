//! The keyring of the operating system: the Secret Service of a Linux desktop (GNOME Keyring, KWallet, KeePassXC) or the keychain of
//! macOS.
//!
//! The kernel's own keyring is none of these: what it holds is gone with the next start of the machine. The messages to the Secret Service
//! are our own (`bus`, `service`): eight calls, against eighteen more crates or a library in C.

#[cfg(target_os = "linux")]
mod bus;
#[cfg(target_os = "macos")]
mod keychain;
#[cfg(target_os = "linux")]
mod service;

use std::path::Path;

#[cfg(target_os = "macos")]
use keychain as system;
#[cfg(target_os = "linux")]
use service as system;

/// What names the program in a keyring.
const APPLICATION: &str = "zeph-host";

/// A keyring that may be there. Nothing is opened until it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyring {
    /// Where the user's message bus listens, as `DBUS_SESSION_BUS_ADDRESS` says it. Not used on macOS.
    address: String,
}

/// Why a keyring does not do what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// There is none.
    #[error("no keyring of the operating system can be reached: {0}")]
    Absent(String),
    /// Its user has to unlock it first.
    #[error("the keyring of the operating system is locked")]
    Locked,
    /// It refused, or its answer makes no sense.
    #[error("the keyring of the operating system failed: {0}")]
    Failed(String),
}

/// Which secret is meant: the folder of the secrets tells the hosts of one user apart.
#[derive(Debug, Clone, Copy)]
struct KeyringItem<'a> {
    folder: &'a Path,
    name: &'a str,
}

impl Keyring {
    /// The keyring of the user whose message bus has this address. On macOS, the user's keychain, whatever the address.
    pub fn at(address: impl Into<String>) -> Self {
        let address = address.into();
        Self { address }
    }

    /// Keeps a value.
    ///
    /// Limits: some 20 s where the keyring does not answer.
    pub(super) fn set(&self, folder: &Path, name: &str, value: &str) -> Result<(), KeyringError> {
        system::open(&self.address)?.set(KeyringItem { folder, name }, value)
    }

    /// The values of some secrets, in the order of their names; `None` for one that is not there.
    pub(super) fn get(
        &self,
        folder: &Path,
        names: &[&str],
    ) -> Result<Vec<Option<String>>, KeyringError> {
        let mut opened = system::open(&self.address)?;
        let values = names
            .iter()
            .map(|name| opened.get(KeyringItem { folder, name }));
        values.collect()
    }

    /// Removes a value, if it is there.
    pub(super) fn remove(&self, folder: &Path, name: &str) -> Result<(), KeyringError> {
        system::open(&self.address)?.remove(KeyringItem { folder, name })
    }
}

impl KeyringError {
    /// What to do about it.
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::Absent(_) => {
                "run this in the session of the desktop, or set the secret anew with `store.keyring = false`, which keeps it in a file"
            }
            Self::Locked => {
                "unlock it, as by logging in to the desktop, or set `store.keyring = false` to keep secrets in a file"
            }
            Self::Failed(_) => "set `store.keyring = false` to keep secrets in a file",
        }
    }
}

impl KeyringItem<'_> {
    /// As people see it in the program that shows the keyring.
    #[cfg(target_os = "linux")]
    fn label(self) -> String {
        format!("{APPLICATION}: {}", self.name)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
