//! What the operator lets any plugin have of files: what each of them holds is cut from it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use zeph_config::Config;
use zeph_core::policy::PathLayer;
use zeph_engine::fs::{FsPolicy, FsPolicyError, Rulings};

/// Everything that the operator lets any plugin have of files, opened once.
#[derive(Debug)]
pub struct OperatorPolicy {
    pub(super) everything: Arc<FsPolicy>,
    /// What rules hide, as compiled for earlier calls.
    rulings: Mutex<BTreeMap<Lists, Arc<Rulings>>>,
}

/// What the rules hide from one call, as the policy says it.
pub(super) type Lists = Vec<Vec<PathLayer>>;

/// Most combinations of rules that are kept compiled: tools times what rules ask of the environment.
const RULINGS_MAX: usize = 256;

impl OperatorPolicy {
    /// Opens the directories of `[tools.file]`.
    ///
    /// Errors: as [`FsPolicy::new`].
    pub fn new(config: &Config) -> Result<Self, FsPolicyError> {
        let everything = FsPolicy::for_user(&config.file, config.tool_user.clone())?;
        Ok(Self {
            everything: Arc::new(everything.with_git_of(config.git_user.clone())),
            rulings: Mutex::default(),
        })
    }

    /// Compiles what rules hide, once.
    pub(super) fn rulings(&self, lists: Lists) -> Result<Arc<Rulings>, FsPolicyError> {
        let mut known = self.rulings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rulings) = known.get(&lists) {
            return Ok(Arc::clone(rulings));
        }
        if known.len() >= RULINGS_MAX {
            known.clear();
        }
        let rulings = Arc::new(Rulings::new(&lists)?);
        known.insert(lists, Arc::clone(&rulings));
        Ok(rulings)
    }
}
