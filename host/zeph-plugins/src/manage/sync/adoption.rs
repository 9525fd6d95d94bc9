//! Taking over pins from a lock that another user wrote, such as that of a bundle: nothing of it counts before a person agreed. What it says of
//! versions and signers is replaced before, by what was found of the components; its tags, which nothing here can prove, are compared with that.

use zeph_core::id::PluginId;

use super::by_name;
use crate::diff::{self, Changes, UpdateRisk};
use crate::lock::{Lock, LockedPlugin};
use crate::manage::ManageError;

/// What another lock pins that the one of the folder does not, or pins otherwise.
#[derive(Debug, Default)]
pub struct Adoption {
    /// In the order of the other lock.
    pub items: Vec<AdoptionItem>,
}

/// A plugin as the other lock pins it.
#[derive(Debug)]
pub struct AdoptionItem {
    /// What is pinned now; `None` for a plugin that is new.
    pub old: Option<LockedPlugin>,
    /// What is to be pinned.
    pub new: LockedPlugin,
    /// What is different; `None` for a plugin that is new.
    pub changes: Option<Changes>,
    /// Why its publisher withdrew it, where that is known.
    pub yanked: Option<String>,
}

impl Adoption {
    /// The plugins of another lock that this one does not pin, or pins otherwise.
    pub fn of_other<'a>(own: &Lock, other: &'a Lock) -> Vec<&'a LockedPlugin> {
        let known = by_name(own);
        let is_known = |theirs: &LockedPlugin| {
            let old = known.get(&theirs.name);
            old.is_some_and(|old| old.pin == theirs.pin)
        };
        let plugins = other.plugins().iter();
        plugins.filter(|theirs| !is_known(theirs)).collect()
    }

    /// Compares a lock with plugins of another. `yanked` says why one of them was withdrawn, where that is known.
    ///
    /// Shape:  versions and signers of `other` are believed: who calls this has checked them.
    /// Errors: `State` for a plugin whose definitions in the other lock are not those it pins; `BadName`.
    pub fn between(
        own: &Lock,
        other: &[LockedPlugin],
        now_ms: i64,
        yanked: impl Fn(&LockedPlugin) -> Option<String>,
    ) -> Result<Self, ManageError> {
        let known = by_name(own);
        let mut items = Vec::new();
        for theirs in other {
            let old = known.get(&theirs.name).copied();
            if old.is_some_and(|old| old.pin == theirs.pin) {
                continue;
            }
            check(theirs)?;
            let new = LockedPlugin {
                accepted_at_ms: now_ms,
                disabled: old.is_some_and(|old| old.disabled),
                next: None,
                ..theirs.clone()
            };
            let yanked = yanked(&new);
            let changes = old.map(|old| diff::between_versions(old, &new, yanked.as_deref()));
            items.push(AdoptionItem {
                old: old.cloned(),
                new,
                changes,
                yanked,
            });
        }
        Ok(Self { items })
    }

    /// The lock of the folder as it will be.
    pub fn merged(&self, own: &Lock) -> Lock {
        let mut merged = own.clone();
        let items = self.items.iter();
        items.for_each(|item| merged.put(item.new.clone()));
        merged
    }

    /// What is taken over of this plugin.
    pub fn item(&self, name: &PluginId) -> Option<&AdoptionItem> {
        self.items.iter().find(|item| item.new.name == *name)
    }

    /// What has to be agreed to by name, over all plugins.
    pub fn risks(&self) -> Vec<UpdateRisk> {
        let mut risks: Vec<UpdateRisk> = self.items.iter().flat_map(AdoptionItem::risks).collect();
        risks.sort_unstable();
        risks.dedup();
        risks
    }
}

impl AdoptionItem {
    /// What has to be agreed to by name.
    pub fn risks(&self) -> Vec<UpdateRisk> {
        match &self.changes {
            Some(changes) => changes.risks().to_vec(),
            None => self.yanked.iter().map(|_| UpdateRisk::Yanked).collect(),
        }
    }
}

/// What a person is shown must be what is pinned.
fn check(plugin: &LockedPlugin) -> Result<(), ManageError> {
    if PluginId::problem(&plugin.name.0).is_some() {
        return Err(ManageError::BadName(plugin.name.0.clone()));
    }
    match plugin.definitions.digest() == plugin.pin.tools {
        true => Ok(()),
        false => Err(ManageError::State {
            name: plugin.name.clone(),
            state: "cannot be taken over: its definitions in the lock do not have the digest that stands beside them".to_owned(),
            hint: Some("the lock was changed by hand; have the bundle made again".to_owned()),
        }),
    }
}
