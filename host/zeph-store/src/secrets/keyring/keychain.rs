//! The keychain of macOS: generic passwords of the service `zeph-host`.

use security_framework::base::Error;
use security_framework::passwords::{
    delete_generic_password, get_generic_password, set_generic_password,
};

use super::{APPLICATION, KeyringError, KeyringItem};

/// `errSecItemNotFound`, `errSecInteractionNotAllowed`, `errSecNotAvailable` of `SecBase.h`.
const NOT_FOUND: i32 = -25_300;
const NO_INTERACTION: i32 = -25_308;
const NOT_AVAILABLE: i32 = -25_291;

/// The user's keychain.
pub(super) struct Keychain;

/// The user's keychain. It is always there; whether it answers is seen when it is used.
pub(super) fn open(_address: &str) -> Result<Keychain, KeyringError> {
    Ok(Keychain)
}

impl Keychain {
    pub(super) fn set(&mut self, item: KeyringItem<'_>, value: &str) -> Result<(), KeyringError> {
        set_generic_password(APPLICATION, &account(item), value.as_bytes()).map_err(failed)
    }

    pub(super) fn get(&mut self, item: KeyringItem<'_>) -> Result<Option<String>, KeyringError> {
        let bytes = match get_generic_password(APPLICATION, &account(item)) {
            Err(error) if error.code() == NOT_FOUND => return Ok(None),
            other => other.map_err(failed)?,
        };
        let text = String::from_utf8(bytes);
        let value = text.map_err(|_| KeyringError::Failed("a value is not text".to_owned()))?;
        Ok(Some(value))
    }

    pub(super) fn remove(&mut self, item: KeyringItem<'_>) -> Result<(), KeyringError> {
        match delete_generic_password(APPLICATION, &account(item)) {
            Err(error) if error.code() == NOT_FOUND => Ok(()),
            other => other.map_err(failed),
        }
    }
}

/// What tells items of the service apart.
fn account(item: KeyringItem<'_>) -> String {
    format!("{} in {}", item.name, item.folder.display())
}

fn failed(error: Error) -> KeyringError {
    match error.code() {
        NO_INTERACTION => KeyringError::Locked,
        NOT_AVAILABLE => KeyringError::Absent("there is no keychain".to_owned()),
        code => KeyringError::Failed(format!("error {code}")),
    }
}
