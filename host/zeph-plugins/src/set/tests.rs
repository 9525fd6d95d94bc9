//! How the plugins of several folders stand beside each other.

use std::path::PathBuf;
use std::sync::Arc;

use zeph_core::id::{Digest, Pin, PluginId, ToolName};
use zeph_core::manifest::Manifest;
use zeph_core::signer::{SignatureVerdict, UnsignedRule};
use zeph_engine::{Engine, EngineOptions, Plugin};

use super::{
    CandidateState, FolderLock, ManifestBy, PluginCandidate, PluginSet, ProgramParts, Status,
    VettedPlugin, read_manifest,
};
use crate::lock::{Lock, PinnedSigner, PluginSource, Provenance};
use crate::manage::names;
use crate::owners::tests::{lock, tool};
use crate::record::ComponentInfo;
use crate::signature::CheckedSignature;

fn id(name: &str) -> PluginId {
    PluginId(name.to_owned())
}

/// A file of a folder with the tool `lookup`, as the locks of [`lock`] pin it.
fn candidate(name: &str, folder_idx: usize) -> PluginCandidate {
    let options = EngineOptions {
        guest_threads: 1,
        pooled: false,
        cache_dir: None,
        on_compile: None,
    };
    let engine = Engine::new(&options).unwrap();
    let digest = Digest::new([7; 32]);
    let tools = vec![tool(name, "lookup")];
    let plugin = Plugin::recall(&engine, id(name), digest, PathBuf::new(), tools);
    let pin = Pin {
        wasm: digest,
        tools: digest,
    };
    PluginCandidate {
        name: id(name),
        path: PathBuf::from(format!("{name}.wasm")),
        folder_idx,
        stamp: None,
        state: CandidateState::Good(Arc::new(VettedPlugin {
            plugin,
            manifest: read_manifest(Manifest::default()),
            manifest_by: ManifestBy::Author,
            pin,
            about: ComponentInfo::default(),
        })),
        signature: None,
    }
}

fn assembled(candidates: Vec<PluginCandidate>, locks: &[FolderLock], n_typed: usize) -> PluginSet {
    let fixed = ProgramParts::default();
    PluginSet::assemble(&fixed, candidates, (locks, n_typed)).unwrap()
}

/// Which plugin of which folder is active, with the names of its tools.
fn active(set: &PluginSet) -> Vec<(usize, String)> {
    let active = set.standings.iter();
    let active = active.filter(|standing| standing.status == Status::Active);
    active
        .map(|standing| {
            let tools: Vec<String> = standing.tools.iter().map(ToString::to_string).collect();
            (standing.folder_idx, tools.join(" "))
        })
        .collect()
}

#[test]
fn a_name_belongs_to_the_first_folder_that_accepted_it_on_or_off() {
    let notes = || Ok(lock(&["notes: lookup"]));
    let disabled = || {
        let mut lock = lock(&["notes: lookup"]);
        lock.get_mut(&id("notes")).unwrap().disabled = true;
        Ok(lock)
    };
    let all = || vec![candidate("notes", 0), candidate("notes", 1)];
    let lookup = |folder_idx| vec![(folder_idx, "lookup".to_owned())];
    for n_typed in [0, 1] {
        let set = assembled(all(), &[notes(), notes()], n_typed);
        assert_eq!(active(&set), lookup(0));
        let set = assembled(all(), &[disabled(), notes()], n_typed);
        assert_eq!(active(&set), []);
        // Its file is gone, or its lock cannot be read.
        let set = assembled(vec![candidate("notes", 1)], &[notes(), notes()], n_typed);
        assert_eq!(active(&set), []);
        let set = assembled(all(), &[Err("broken".to_owned()), notes()], n_typed);
        assert_eq!(active(&set), []);
    }
    let set = assembled(
        vec![candidate("notes", 1)],
        &[Ok(Lock::default()), notes()],
        1,
    );
    assert_eq!(active(&set), lookup(1));
    // Another plugin of a typed folder gets the long name only.
    let both = vec![candidate("notes", 0), candidate("evil", 1)];
    let mut evil = lock(&["evil: lookup"]);
    evil.give(ToolName::new("lookup").unwrap(), id("evil"));
    let set = assembled(both, &[notes(), Ok(evil)], 1);
    let expect = [(0, "lookup".to_owned()), (1, "evil__lookup".to_owned())];
    assert_eq!(active(&set), expect);
}

/// Every command means the same one, whichever of them is active.
#[test]
fn a_name_stands_for_the_plugin_of_the_folder_that_was_typed() {
    let notes = || Ok(lock(&["notes: lookup"]));
    let both = || vec![candidate("notes", 0), candidate("notes", 1)];
    for (n_typed, folder_idx) in [(0, 0), (1, 1)] {
        let set = assembled(both(), &[notes(), notes()], n_typed);
        let standing = names::standing(&set, "notes", &[]).unwrap();
        assert_eq!(standing.folder_idx, folder_idx);
        assert_eq!(active(&set)[0].0, 0);
    }
    let set = assembled(vec![candidate("notes", 0)], &[notes(), notes()], 1);
    assert_eq!(names::standing(&set, "notes", &[]).unwrap().folder_idx, 0);
}

/// Under `unsigned = "ask"` somebody has to have agreed: a signer that is gone did not, nor did the author of a lock.
#[test]
fn a_pin_is_no_agreement_to_a_plugin_that_lost_its_signer_or_lies_in_a_typed_folder() {
    let unsigned = |rule| {
        Some(CheckedSignature {
            verdict: SignatureVerdict::Unsigned {
                passed_over: Vec::new(),
            },
            rule,
        })
    };
    let standing = |rule, signer: Option<&str>, n_typed: usize| {
        let mut lock = lock(&["notes: lookup"]);
        lock.get_mut(&id("notes")).unwrap().provenance = Some(Provenance {
            source: PluginSource::File {
                path: PathBuf::from("/notes.wasm"),
            },
            version: None,
            signer: signer.map(|name| PinnedSigner {
                name: name.to_owned(),
                key: "minisign 01".to_owned(),
            }),
        });
        let candidate = PluginCandidate {
            signature: unsigned(rule),
            ..candidate("notes", 0)
        };
        let mut set = assembled(vec![candidate], &[Ok(lock)], n_typed);
        set.standings.remove(0)
    };
    use UnsignedRule::{Allow, Ask};
    assert_eq!(standing(Ask, None, 0).status, Status::Active);
    assert_eq!(standing(Allow, Some("acme"), 0).status, Status::Active);
    assert_eq!(standing(Allow, None, 1).status, Status::Active);
    let lost = standing(Ask, Some("acme"), 0);
    assert_eq!((lost.status, lost.has_changed), (Status::Changed, true));
    let typed = standing(Ask, None, 1);
    let Status::Quarantined(reason) = &typed.status else {
        panic!("{typed:?}");
    };
    assert!(reason.contains("`zeph-host plugin add`"), "{reason}");
    assert!(!typed.awaits_agreement);
}

#[test]
fn what_is_switched_off_and_was_exchanged_has_changed() {
    let mut lock = lock(&["notes: lookup"]);
    let notes = lock.get_mut(&id("notes")).unwrap();
    (notes.disabled, notes.pin.wasm) = (true, Digest::new([8; 32]));
    let set = assembled(vec![candidate("notes", 0)], &[Ok(lock)], 0);
    let standing = &set.standings[0];
    assert_eq!(
        (&standing.status, standing.has_changed),
        (&Status::Disabled, true)
    );
}
