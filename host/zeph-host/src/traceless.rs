//! For tests: a configuration of a host that leaves nothing on the disk and reads nothing of the user's.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use zeph_config::{Config, Flags, Surroundings};

/// The defaults with what `flags` say, in `working_directory`.
pub(crate) fn config(working_directory: PathBuf, flags: Flags) -> Config {
    let surroundings = Surroundings {
        env: BTreeMap::new(),
        working_directory,
        typed_directory: None,
        home: None,
        config_home: None,
        data_home: None,
        state_home: None,
        cache_home: None,
        cores: NonZeroUsize::MIN,
    };
    let set = [
        "store.path=:memory:",
        "tools.audit.file=none",
        "engine.cache_dir=none",
    ];
    let flags = Flags {
        set: set.map(str::to_owned).to_vec(),
        no_project: true,
        ..flags
    };
    Config::load(&surroundings, &flags).unwrap().config
}
