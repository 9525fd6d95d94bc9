//! Folders that are brought in line with their locks, by themselves and while others change them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use zeph_config::lock_of;
use zeph_core::id::{Pin, PluginId};

use super::{Adoption, SeenPlugin, SyncAction, SyncFolder, SyncItem, held};
use crate::diff::UpdateRisk;
use crate::folder::FILES_MAX;
use crate::lock::{Lock, LockFile, LockedPlugin, PinnedSigner, PluginSource, Provenance};
use crate::manage::ManageError;
use crate::signature::FoundSignatures;

/// Without signatures.
const NONE: FoundSignatures = FoundSignatures {
    minisign: None,
    bundles: None,
    manifest: None,
    unread: Vec::new(),
};

/// A plugin of this name whose component has these bytes.
fn locked(name: &str, bytes: &[u8]) -> LockedPlugin {
    let definitions = crate::definitions::Definitions::default();
    LockedPlugin {
        name: PluginId(name.to_owned()),
        file: format!("{name}.wasm"),
        pin: Pin {
            wasm: zeph_engine::digest(bytes),
            tools: definitions.digest(),
        },
        accepted_at_ms: 0,
        disabled: false,
        operator_wants: false,
        provenance: None,
        next: None,
        definitions,
    }
}

fn from(mut plugin: LockedPlugin, version: &str, signer: Option<&str>) -> LockedPlugin {
    plugin.provenance = Some(Provenance {
        source: PluginSource::Registry {
            reference: format!("registry.example.org/team/{}:{version}", plugin.name),
            manifest: plugin.pin.wasm,
        },
        version: Some(version.parse().unwrap()),
        signer: signer.map(|name| PinnedSigner {
            name: name.to_owned(),
            key: "minisign 01".to_owned(),
        }),
    });
    plugin
}

fn lock(plugins: &[LockedPlugin]) -> Lock {
    let text = Lock::text_of(plugins);
    Lock::parse(&text, Path::new("zeph.lock")).unwrap()
}

struct World {
    _dir: tempfile::TempDir,
    folder: PathBuf,
}

impl World {
    fn new(plugins: &[LockedPlugin]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("plugins");
        fs::create_dir(&folder).unwrap();
        fs::write(lock_of(&folder), Lock::text_of(plugins)).unwrap();
        Self { _dir: dir, folder }
    }

    fn put(&self, file: &str, bytes: &[u8]) {
        fs::write(self.folder.join(file), bytes).unwrap();
    }

    fn open(&self) -> SyncFolder {
        SyncFolder::open(&self.folder).unwrap()
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).unwrap();
        let mut files: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        files
    }
}

fn actions(folder: &SyncFolder) -> Vec<(String, SyncAction)> {
    let plan = folder.plan(&folder.lock().unwrap()).unwrap();
    let items = plan.items.iter();
    items.map(|item| (item.name(), item.action)).collect()
}

#[test]
fn a_folder_is_compared_with_its_lock_and_brought_in_line() {
    let plugins = [locked("a", b"A"), locked("b", b"B"), locked("c", b"C")];
    let world = World::new(&plugins);
    world.put("a.wasm", b"A");
    world.put("b.wasm", b"other");
    world.put("x.wasm", b"X");
    world.put("no plugin.wasm", b"Y");
    world.put("notes.txt", b"");
    let folder = world.open();
    let expect = [
        ("a", SyncAction::Keep),
        ("b", SyncAction::Replace),
        ("c", SyncAction::Install),
        ("no plugin.wasm", SyncAction::Beyond),
        ("x.wasm", SyncAction::Beyond),
    ];
    assert_eq!(
        actions(&folder),
        expect.map(|(name, it)| (name.to_owned(), it))
    );
    folder.install(&plugins[1], (b"B", &NONE)).unwrap();
    folder.install(&plugins[2], (b"C", &NONE)).unwrap();
    folder.remove(&"x.wasm".into()).unwrap();
    folder.remove(&"no plugin.wasm".into()).unwrap();
    assert_eq!(world.files(), ["a.wasm", "b.wasm", "c.wasm", "notes.txt"]);
    assert!(folder.plan(&folder.lock().unwrap()).unwrap().is_done());
    assert_eq!(fs::read(world.folder.join("b.wasm")).unwrap(), b"B");
    let mode = fs::metadata(world.folder.join("c.wasm")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777 & !0o022, 0o644 & !0o022);
}

#[test]
fn signatures_come_and_go_with_their_component() {
    let plugin = locked("a", b"A");
    let world = World::new(std::slice::from_ref(&plugin));
    world.put("a.wasm.sigstore.json", b"of another");
    let signatures = FoundSignatures {
        minisign: Some(b"signature".to_vec()),
        bundles: None,
        manifest: Some(b"manifest".to_vec()),
        unread: Vec::new(),
    };
    let folder = world.open();
    folder.install(&plugin, (b"A", &signatures)).unwrap();
    let expect = ["a.wasm", "a.wasm.manifest.json", "a.wasm.minisig"];
    assert_eq!(world.files(), expect);
    let (bytes, found) = folder
        .component(&plugin.name, plugin.pin.wasm)
        .unwrap()
        .unwrap();
    assert_eq!((&bytes[..], found), (&b"A"[..], signatures));
    fs::create_dir(world.folder.join("a.wasm.sigstore.json")).unwrap();
    let unreadable = folder.component(&plugin.name, plugin.pin.wasm);
    assert!(unreadable.is_err(), "{unreadable:?}");
    fs::remove_dir(world.folder.join("a.wasm.sigstore.json")).unwrap();
    LockFile::edit(&lock_of(&world.folder), |lock| {
        lock.remove(&plugin.name);
        Ok::<_, ManageError>(())
    })
    .unwrap();
    folder.remove(&"a.wasm".into()).unwrap();
    assert!(world.files().is_empty(), "{:?}", world.files());
}

#[test]
fn other_bytes_are_not_installed_and_leave_nothing() {
    let plugin = locked("a", b"A");
    let world = World::new(std::slice::from_ref(&plugin));
    world.put("a.wasm", b"old");
    let folder = world.open();
    let error = folder.install(&plugin, (b"evil", &NONE)).unwrap_err();
    assert!(matches!(error, ManageError::Bad { .. }), "{error:?}");
    assert_eq!(fs::read(world.folder.join("a.wasm")).unwrap(), b"old");
    assert_eq!(world.files(), ["a.wasm"]);
}

#[test]
fn a_lock_that_changed_meanwhile_stops_the_installation() {
    let plugin = locked("a", b"A");
    let world = World::new(std::slice::from_ref(&plugin));
    world.put("b.wasm", b"B");
    let folder = world.open();
    LockFile::edit(&lock_of(&world.folder), |lock| {
        lock.put(locked("a", b"another"));
        lock.put(locked("b", b"B"));
        Ok::<_, ManageError>(())
    })
    .unwrap();
    let error = folder.install(&plugin, (b"A", &NONE)).unwrap_err();
    assert!(matches!(error, ManageError::Meanwhile(_)), "{error:?}");
    let error = folder.remove(&"b.wasm".into()).unwrap_err();
    assert!(matches!(error, ManageError::Meanwhile(_)), "{error:?}");
    assert_eq!(world.files(), ["b.wasm"]);
}

#[test]
fn a_folder_that_was_exchanged_for_a_link_is_still_the_one_that_was_opened() {
    let plugin = locked("a", b"A");
    let world = World::new(std::slice::from_ref(&plugin));
    let elsewhere = world.folder.with_file_name("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let folder = world.open();
    let moved = world.folder.with_file_name("moved");
    fs::rename(&world.folder, &moved).unwrap();
    symlink(&elsewhere, &world.folder).unwrap();
    folder.install(&plugin, (b"A", &NONE)).unwrap();
    assert_eq!(fs::read(moved.join("a.wasm")).unwrap(), b"A");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn a_link_in_the_place_of_a_plugin_is_replaced_and_what_it_leads_to_is_not() {
    let plugin = locked("a", b"A");
    let world = World::new(std::slice::from_ref(&plugin));
    let target = world.folder.with_file_name("precious");
    fs::write(&target, b"precious").unwrap();
    symlink(&target, world.folder.join("a.wasm")).unwrap();
    symlink(&target, world.folder.join("b.wasm")).unwrap();
    let folder = world.open();
    folder.install(&plugin, (b"A", &NONE)).unwrap();
    folder.remove(&"b.wasm".into()).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    assert!(
        world
            .folder
            .join("a.wasm")
            .symlink_metadata()
            .unwrap()
            .is_file()
    );
    assert_eq!(world.files(), ["a.wasm"]);
}

#[test]
fn names_of_a_lock_cannot_leave_the_folder() {
    for name in ["../a", "a/b", "/etc/a", "", ".a", "A b"] {
        let world = World::new(&[locked(name, b"A")]);
        let folder = world.open();
        let refused = folder.plan(&folder.lock().unwrap());
        assert!(matches!(refused, Err(ManageError::BadName(_))), "{name}");
        let refused = folder.install(&locked(name, b"A"), (b"A", &NONE));
        assert!(matches!(refused, Err(ManageError::BadName(_))), "{name}");
    }
}

/// Files that a command moves one after the other are not looked at in between.
#[test]
fn a_host_waits_for_the_command_that_changes_a_folder() {
    let world = World::new(&[]);
    let folder = &world.folder;
    drop(world.open());
    assert!(held::undisturbed(folder).is_none(), "no command was there");
    let guard = held::only_one(folder).unwrap();
    std::thread::scope(|scope| {
        let host = scope.spawn(|| held::undisturbed(folder).is_some());
        drop(guard);
        assert!(host.join().unwrap());
    });
    let hosts = [(); 2].map(|()| held::undisturbed(folder).unwrap());
    drop(hosts);
    drop(held::only_one(folder).unwrap());
}

#[test]
fn commands_that_change_a_folder_wait_for_each_other_and_readers_for_nobody() {
    let world = World::new(&[]);
    let names = ["a", "b", "c", "d"];
    let open = world.open();
    let guard = held::only_one(&world.folder).unwrap();
    assert!(open.plan(&open.lock().unwrap()).unwrap().is_done());
    assert_eq!(
        open.seen(&PluginId("a".to_owned())).unwrap(),
        SeenPlugin::default()
    );
    std::thread::scope(|scope| {
        for name in names {
            let folder = &world.folder;
            let _adding = scope.spawn(move || {
                let folder = SyncFolder::open(folder).unwrap();
                let new = locked(name, name.as_bytes());
                folder
                    .add(SeenPlugin::default(), &new, (name.as_bytes(), &NONE))
                    .unwrap();
            });
        }
        assert!(world.files().is_empty());
        drop(guard);
    });
    assert_eq!(world.files(), names.map(|name| format!("{name}.wasm")));
}

/// What a person agreed to is what was there then.
#[test]
fn what_came_meanwhile_is_not_overwritten() {
    let world = World::new(&[]);
    let folder = world.open();
    let new = locked("a", b"A");
    let free = folder.seen(&new.name).unwrap();
    world.put("a.wasm", b"other");
    let error = folder.add(free, &new, (b"A", &NONE)).unwrap_err();
    assert!(matches!(error, ManageError::Meanwhile(_)), "{error:?}");
    assert_eq!(fs::read(world.folder.join("a.wasm")).unwrap(), b"other");

    let other = folder.seen(&new.name).unwrap();
    let pin = |plugin: LockedPlugin| {
        let pinned = LockFile::edit(&lock_of(&world.folder), |lock| {
            lock.put(plugin);
            Ok::<_, ManageError>(())
        });
        pinned.unwrap();
    };
    pin(locked("a", b"third"));
    let error = folder.add(other, &new, (b"A", &NONE)).unwrap_err();
    assert!(matches!(error, ManageError::Meanwhile(_)), "{error:?}");
    // A host pins what it finds: that is what was seen.
    pin(locked("a", b"other"));
    folder.add(other, &new, (b"A", &NONE)).unwrap();
    assert_eq!(fs::read(world.folder.join("a.wasm")).unwrap(), b"A");
    assert_eq!(world.files(), ["a.wasm"]);
}

#[test]
fn a_link_to_the_component_itself_stays() {
    let plugin = locked("a", b"A");
    let world = World::new(std::slice::from_ref(&plugin));
    let target = world.folder.with_file_name("a-of-the-project");
    fs::write(&target, b"A").unwrap();
    symlink(&target, world.folder.join("a.wasm")).unwrap();
    let folder = world.open();
    let seen = folder.seen(&plugin.name).unwrap();
    folder.add(seen, &plugin, (b"A", &NONE)).unwrap();
    assert_eq!(fs::read_link(world.folder.join("a.wasm")).unwrap(), target);
}

#[test]
fn a_full_folder_takes_no_other_plugin() {
    let world = World::new(&[]);
    for n in 0..FILES_MAX {
        world.put(&format!("p{n}.wasm"), b"x");
    }
    let folder = world.open();
    let add = |name: &str| {
        let new = locked(name, b"A");
        folder.add(folder.seen(&new.name).unwrap(), &new, (b"A", &NONE))
    };
    let error = add("another").unwrap_err();
    assert!(matches!(error, ManageError::Full(_)), "{error:?}");
    assert_eq!(world.files().len(), FILES_MAX);
    add("p7").unwrap();
}

#[test]
fn what_a_command_left_that_was_killed_is_removed() {
    let world = World::new(&[]);
    world.put(".adding-1-b.wasm.part", b"half");
    world.put(".adding-kept", b"of another writer");
    let folder = world.open();
    let new = locked("a", b"A");
    folder
        .add(SeenPlugin::default(), &new, (b"A", &NONE))
        .unwrap();
    assert_eq!(world.files(), [".adding-kept", "a.wasm"]);
}

#[test]
fn a_folder_that_everybody_may_change_is_not_used() {
    let world = World::new(&[]);
    fs::set_permissions(&world.folder, fs::Permissions::from_mode(0o777)).unwrap();
    let error = SyncFolder::open(&world.folder).unwrap_err();
    assert!(error.to_string().contains("everybody may write"), "{error}");
}

#[test]
fn what_another_lock_pins_is_shown_with_what_has_to_be_agreed_to() {
    let kept = locked("kept", b"K");
    let ours = from(locked("notes", b"1"), "1.2.0", Some("team"));
    let theirs = from(locked("notes", b"2"), "1.1.0", Some("eve"));
    let new = from(locked("weather", b"W"), "0.1.0", None);
    let world = World::new(&[kept.clone(), ours.clone()]);
    let folder = world.open();
    let own = folder.lock().unwrap();
    let other = lock(&[kept, theirs.clone(), new.clone()]);
    let news = Adoption::of_other(&own, &other);
    let names: Vec<&str> = news.iter().map(|plugin| plugin.name.0.as_str()).collect();
    assert_eq!(names, ["notes", "weather"]);
    let adoption = Adoption::between(&own, other.plugins(), 5_000, |plugin| {
        (plugin.name.0 == "weather").then(|| "broken".to_owned())
    })
    .unwrap();
    let [notes, weather] = adoption.items.as_slice() else {
        panic!("{adoption:?}");
    };
    assert_eq!(notes.risks(), [UpdateRisk::Signer, UpdateRisk::Downgrade]);
    assert_eq!(weather.risks(), [UpdateRisk::Yanked]);
    assert_eq!(adoption.risks().len(), 3);
    let changes = notes.changes.as_ref().unwrap();
    let lines: Vec<String> = changes.lines().iter().map(ToString::to_string).collect();
    assert!(
        lines[1].starts_with("! it is signed by `eve`; what was accepted was signed by `team`"),
        "{lines:?}"
    );
    assert!(lines[2].contains("the later version 1.2.0"), "{lines:?}");
    let plan = folder.plan(&adoption.merged(&own)).unwrap();
    let install = |item: &SyncItem| item.action == SyncAction::Install;
    assert_eq!(plan.items.iter().filter(|item| install(item)).count(), 3);
    for (item, bytes) in adoption.items.iter().zip([b"2", b"W"]) {
        folder
            .update(item.old.as_ref(), &item.new, (bytes, &NONE))
            .unwrap();
        // What was agreed to was about another lock.
        let again = folder.update(item.old.as_ref(), &item.new, (bytes, &NONE));
        assert!(matches!(again, Err(ManageError::Meanwhile(_))));
    }
    let adopted = folder.lock().unwrap();
    let notes = adopted.get(&theirs.name).unwrap();
    assert_eq!(notes.pin, theirs.pin);
    assert_eq!(notes.accepted_at_ms, 5_000);
    assert_eq!(notes.provenance, theirs.provenance);
    assert_eq!(adopted.get(&new.name).unwrap().pin, new.pin);
}

#[test]
fn a_lock_whose_definitions_are_not_what_it_pins_is_not_taken_over() {
    let mut forged = locked("notes", b"1");
    forged.pin.tools = zeph_engine::digest(b"something else");
    let refused = Adoption::between(&lock(&[]), &[forged], 0, |_| None);
    let error = refused.unwrap_err();
    assert!(
        error.to_string().contains("cannot be taken over"),
        "{error}"
    );
}

#[test]
fn an_update_pins_and_replaces_in_one_step() {
    let old = LockedPlugin {
        disabled: true,
        ..from(locked("notes", b"1"), "1.0.0", None)
    };
    let new = from(locked("notes", b"2"), "1.1.0", None);
    let world = World::new(std::slice::from_ref(&old));
    world.put("notes.wasm", b"1");
    let folder = world.open();
    let error = folder.update(Some(&old), &new, (b"3", &NONE)).unwrap_err();
    assert!(matches!(error, ManageError::Bad { .. }), "{error:?}");
    folder.update(Some(&old), &new, (b"2", &NONE)).unwrap();
    let lock = folder.lock().unwrap();
    let notes = lock.get(&new.name).unwrap();
    assert_eq!((notes.pin, notes.disabled), (new.pin, true));
    assert_eq!(notes.version().unwrap().to_string(), "1.1.0");
    assert_eq!(fs::read(world.folder.join("notes.wasm")).unwrap(), b"2");
    let error = folder.update(Some(&old), &new, (b"2", &NONE)).unwrap_err();
    assert!(matches!(error, ManageError::Meanwhile(_)), "{error:?}");
}

/// The component is put in place only where the lock could be written: else it would be in use, or off, with a lock that knows nothing of it.
#[test]
fn a_lock_that_cannot_be_written_leaves_the_component_as_it_was() {
    let old = from(locked("notes", b"1"), "1.0.0", None);
    let mut new = from(locked("notes", b"2"), "1.1.0", None);
    let path = format!("/{}", "a".repeat(3000));
    new.provenance.as_mut().unwrap().source = PluginSource::File { path: path.into() };
    let world = World::new(std::slice::from_ref(&old));
    world.put("notes.wasm", b"1");
    let text = fs::read_to_string(lock_of(&world.folder)).unwrap();
    let folder = world.open();
    let content = (&b"2"[..], &NONE);
    let other = LockedPlugin {
        name: PluginId("other".to_owned()),
        ..new.clone()
    };
    for refused in [
        folder.add(SeenPlugin::default(), &other, content),
        folder.add(folder.seen(&new.name).unwrap(), &new, content),
        folder.update(Some(&old), &new, content),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, ManageError::Lock(_)), "{error:?}");
    }
    assert_eq!(world.files(), ["notes.wasm"]);
    assert_eq!(fs::read(world.folder.join("notes.wasm")).unwrap(), b"1");
    assert_eq!(fs::read_to_string(lock_of(&world.folder)).unwrap(), text);
}

/// The other way round, too: where the component cannot be put in place, the lock says what it said.
#[test]
fn a_component_that_cannot_be_put_in_place_leaves_the_lock_as_it_was() {
    let world = World::new(&[]);
    // No file can be moved over a directory.
    fs::create_dir(world.folder.join("notes.wasm")).unwrap();
    // Nor is one taken away that lies beside.
    world.put("notes.wasm.minisig", b"of 1");
    world.put("notes.wasm.manifest.json", b"about 1");
    let files = world.files();
    let text = fs::read_to_string(lock_of(&world.folder)).unwrap();
    let new = from(locked("notes", b"2"), "1.1.0", None);
    let signed = FoundSignatures {
        manifest: Some(b"about 2".to_vec()),
        bundles: Some(b"of 2".to_vec()),
        ..NONE
    };
    for signatures in [&NONE, &signed] {
        let content = (&b"2"[..], signatures);
        let refused = world.open().add(SeenPlugin::default(), &new, content);
        let error = refused.unwrap_err();
        assert!(matches!(error, ManageError::File { .. }), "{error:?}");
        assert_eq!(world.files(), files);
        let read = |name| fs::read(world.folder.join(name)).unwrap();
        assert_eq!(read("notes.wasm.minisig"), b"of 1");
        assert_eq!(read("notes.wasm.manifest.json"), b"about 1");
    }
    assert_eq!(fs::read_to_string(lock_of(&world.folder)).unwrap(), text);
    let beside = fs::read_dir(world.folder.parent().unwrap()).unwrap();
    let names = beside.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let temporary: Vec<_> = names
        .filter(|name| name.starts_with(".zeph.lock."))
        .collect();
    assert_eq!(temporary, [".zeph.lock.guard"]);
}
