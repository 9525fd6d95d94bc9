use std::collections::BTreeSet;
use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use super::{UNFINISHED, prune_to};

const DAY: Duration = Duration::from_hours(24);

const ENGINE: &str = "0123456789abcdef";

const OTHER_ENGINE: &str = "fedcba9876543210";

/// The name of a component's file.
fn name(component: char, engine: &str, extension: &str) -> String {
    let digest = component.to_string().repeat(64);
    format!("{digest}-{engine}.{extension}")
}

/// Files with their bytes and their age in days, beside one of `a` that was written this moment; which of them are left.
fn check(files: &[(String, usize, u32)], n_bytes_max: u64, expected: &[String]) {
    let dir = tempfile::tempdir().unwrap();
    // Not the time of this machine, but that of the file system.
    let now = SystemTime::UNIX_EPOCH + 10_000 * DAY;
    let make = |name: &str, n_bytes: usize, age: u32| {
        let path = dir.path().join(name);
        fs::write(&path, vec![b'x'; n_bytes]).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(now - age * DAY).unwrap();
        path
    };
    let written = make(&name('a', ENGINE, "sealed"), 100, 0);
    for (name, n_bytes, age) in files {
        make(name, *n_bytes, *age);
    }
    prune_to(&written, ENGINE, n_bytes_max).unwrap();
    let left = fs::read_dir(dir.path()).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let written = name('a', ENGINE, "sealed");
    let expected = expected.iter().cloned().chain([written]);
    assert_eq!(
        left.collect::<BTreeSet<_>>(),
        expected.collect::<BTreeSet<_>>()
    );
}

#[test]
fn files_of_other_engines_go_after_a_month() {
    let own = (name('b', ENGINE, "sealed"), 1, 400);
    let recent = (name('c', OTHER_ENGINE, "sealed"), 1, 30);
    let old = (name('d', OTHER_ENGINE, "sealed"), 1, 31);
    let left = [own.0.clone(), recent.0.clone()];
    check(&[own, recent, old], 1_000, &left);
}

#[test]
fn the_files_of_a_component_go_together() {
    // Its seal was written last: as long as that is new, none of them goes.
    let names = |component| ["cwasm", "lock", "seal"].map(|end| name(component, OTHER_ENGINE, end));
    let (old, new) = (names('b'), names('c'));
    let aged = |names: &[String; 3], ages: [u32; 3]| -> Vec<_> {
        let each = names.iter().zip(ages);
        each.map(|(name, age)| (name.clone(), 1, age)).collect()
    };
    let files = [aged(&old, [50, 40, 40]), aged(&new, [50, 40, 2])].concat();
    check(&files, 1_000, &new);
}

#[test]
fn of_too_much_the_oldest_goes_first() {
    let file = |component, age| (name(component, ENGINE, "sealed"), 40, age);
    let files = [file('b', 3), file('c', 1), file('d', 2)];
    let left = [files[1].0.clone(), files[2].0.clone()];
    check(&files, 200, &left);
    check(&files, 179, &left[..1]);
    check(&files, 0, &[]);
}

#[test]
fn what_a_cache_does_not_write_stays() {
    let half = format!("{UNFINISHED}x");
    let foreign = [
        "notes.txt".to_owned(),
        ".tmpAbCdEf".to_owned(),
        format!("{}.sealed", "e".repeat(81)),
        name('E', OTHER_ENGINE, "sealed"),
    ];
    let files = foreign.each_ref().map(|name| (name.clone(), 1, 999));
    let left_by_the_dead = (half, 1, 1);
    check(&[&files[..], &[left_by_the_dead]].concat(), 0, &foreign);
}
