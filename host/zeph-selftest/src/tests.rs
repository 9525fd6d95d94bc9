use std::collections::HashSet;

use crate::{Probe, cache, calls, egress, files, guests, secrets, tries};

fn probes() -> impl Iterator<Item = &'static Probe> {
    let probes = tries::PROBES.iter().chain(files::PROBES);
    let probes = probes.chain(egress::PROBES).chain(secrets::PROBES);
    probes.chain(calls::PROBES).chain(cache::PROBES)
}

#[test]
fn every_wall_has_its_own_name() {
    let mut names = HashSet::new();
    assert!(probes().all(|probe| names.insert(probe.name)));
}

#[test]
fn the_guests_are_found_by_name() {
    for (name, bytes) in guests::GUESTS {
        assert_eq!(
            guests::guest(name).map(<[u8]>::len),
            Some(bytes.len()),
            "{name}"
        );
    }
    assert!(guests::guest("nobody").is_none());
}
