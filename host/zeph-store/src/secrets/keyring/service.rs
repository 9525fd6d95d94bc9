//! The Secret Service of the desktop. Values pass the user's own bus as they are: who can read them there can ask the service for them.
//!
//! Source: Secret Service API 0.2, with the algorithm `plain`.

use super::bus::{Bus, Method, Writer};
use super::{APPLICATION, KeyringError, KeyringItem};

const SERVICE: &str = "org.freedesktop.secrets";
const SERVICE_PATH: &str = "/org/freedesktop/secrets";
const SERVICE_INTERFACE: &str = "org.freedesktop.Secret.Service";
const COLLECTION: &str = "org.freedesktop.Secret.Collection";
const ITEM: &str = "org.freedesktop.Secret.Item";

/// The path of no object.
const NOTHING: &str = "/";

/// What values are marked as.
const TEXT: &str = "text/plain; charset=utf8";

/// An open session with the service.
pub(super) struct Service {
    bus: Bus,
    session: String,
    /// The collection of secrets that nobody put elsewhere.
    collection: String,
}

/// Begins a session with the service.
pub(super) fn open(address: &str) -> Result<Service, KeyringError> {
    let mut bus = Bus::connect(address)?;
    let mut arguments = Writer::default();
    arguments.text("plain");
    arguments.signature("s");
    arguments.text("");
    let mut opened = bus.call(&service("OpenSession", "sv"), arguments)?;
    let kind = opened.signature();
    let output = kind.filter(|kind| kind == "s").and_then(|_| opened.text());
    let session = known(output.and_then(|_| opened.text()))?;
    let mut alias = Writer::default();
    alias.text("default");
    let collection = bus.call(&service("ReadAlias", "s"), alias)?.text();
    match known(collection)? {
        none if none == NOTHING => Err(KeyringError::Absent(
            "the service has no default keyring".to_owned(),
        )),
        collection => Ok(Service {
            bus,
            session,
            collection,
        }),
    }
}

impl Service {
    /// Keeps a value, in place of an earlier one.
    pub(super) fn set(&mut self, item: KeyringItem<'_>, value: &str) -> Result<(), KeyringError> {
        if self.is_locked()? {
            self.unlock(&self.collection.clone())?;
        }
        let mut arguments = Writer::default();
        arguments.array(8, |properties| {
            properties.align(8);
            properties.text("org.freedesktop.Secret.Item.Label");
            properties.signature("s");
            properties.text(&item.label());
            properties.align(8);
            properties.text("org.freedesktop.Secret.Item.Attributes");
            properties.signature("a{ss}");
            attributes(properties, item);
        });
        arguments.align(8);
        arguments.text(&self.session);
        arguments.blob(b"");
        arguments.blob(value.as_bytes());
        arguments.text(TEXT);
        arguments.bool(true);
        let method = Method {
            path: &self.collection,
            interface: COLLECTION,
            ..service("CreateItem", "a{sv}(oayays)b")
        };
        let mut created = self.bus.call(&method, arguments)?;
        let item = known(created.text())?;
        let prompt = known(created.text())?;
        match item == NOTHING || prompt != NOTHING {
            true => Err(KeyringError::Locked),
            false => Ok(()),
        }
    }

    /// The value; `None` when there is none.
    pub(super) fn get(&mut self, item: KeyringItem<'_>) -> Result<Option<String>, KeyringError> {
        let Some(path) = self.find(item)? else {
            return Ok(None);
        };
        let mut arguments = Writer::default();
        arguments.text(&self.session);
        let mut secret = self
            .bus
            .call(&of_item(&path, "GetSecret", "o"), arguments)?;
        secret.align(8);
        let _session = known(secret.text())?;
        let _parameters = known(secret.blob())?;
        let value = known(secret.blob())?;
        let text = String::from_utf8(value);
        let text = text.map_err(|_| KeyringError::Failed("a value is not text".to_owned()))?;
        Ok(Some(text))
    }

    /// Removes the value, if it is there.
    pub(super) fn remove(&mut self, item: KeyringItem<'_>) -> Result<(), KeyringError> {
        let Some(path) = self.find(item)? else {
            return Ok(());
        };
        let method = of_item(&path, "Delete", "");
        let prompt = self.bus.call(&method, Writer::default())?.text();
        match known(prompt)?.as_str() {
            NOTHING => Ok(()),
            _ => Err(KeyringError::Locked),
        }
    }

    /// The item, unlocked.
    fn find(&mut self, item: KeyringItem<'_>) -> Result<Option<String>, KeyringError> {
        let mut arguments = Writer::default();
        attributes(&mut arguments, item);
        let mut found = self.bus.call(&service("SearchItems", "a{ss}"), arguments)?;
        let unlocked = known(found.texts())?;
        let locked = known(found.texts())?;
        if let Some(path) = unlocked.into_iter().next() {
            return Ok(Some(path));
        }
        let Some(path) = locked.into_iter().next() else {
            return Ok(None);
        };
        self.unlock(&path)?;
        Ok(Some(path))
    }

    /// Whether the default keyring is locked.
    fn is_locked(&mut self) -> Result<bool, KeyringError> {
        let mut arguments = Writer::default();
        arguments.text(COLLECTION);
        arguments.text("Locked");
        let method = Method {
            path: &self.collection,
            interface: "org.freedesktop.DBus.Properties",
            ..service("Get", "ss")
        };
        let mut value = self.bus.call(&method, arguments)?;
        let is_flag = value.signature().is_some_and(|kind| kind == "b");
        known(is_flag.then(|| value.bool()).flatten())
    }

    /// Unlocks what can be unlocked without asking its user.
    fn unlock(&mut self, path: &str) -> Result<(), KeyringError> {
        let mut arguments = Writer::default();
        arguments.array(4, |objects| objects.text(path));
        let mut answer = self.bus.call(&service("Unlock", "ao"), arguments)?;
        let unlocked = known(answer.texts())?;
        match unlocked.iter().any(|one| one == path) {
            true => Ok(()),
            false => Err(KeyringError::Locked),
        }
    }
}

/// What an item is found by.
fn attributes(arguments: &mut Writer, item: KeyringItem<'_>) {
    let folder = item.folder.to_string_lossy();
    let pairs = [
        ("application", APPLICATION),
        ("folder", &folder),
        ("name", item.name),
    ];
    arguments.array(8, |entries| {
        for (key, value) in pairs {
            entries.align(8);
            entries.text(key);
            entries.text(value);
        }
    });
}

fn service<'a>(member: &'a str, signature: &'a str) -> Method<'a> {
    Method {
        destination: SERVICE,
        path: SERVICE_PATH,
        interface: SERVICE_INTERFACE,
        member,
        signature,
    }
}

fn of_item<'a>(path: &'a str, member: &'a str, signature: &'a str) -> Method<'a> {
    Method {
        path,
        interface: ITEM,
        ..service(member, signature)
    }
}

fn known<T>(value: Option<T>) -> Result<T, KeyringError> {
    value.ok_or_else(|| KeyringError::Failed("an answer makes no sense".to_owned()))
}
