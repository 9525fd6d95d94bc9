//! The user that tools work as, where that is another one than the host's own (`tools.scope.run_as_user`).
//!
//! On Linux a user belongs to a thread. A thread that becomes the user of the tools does so for good and ends with its work: nothing has
//! to be given back, and no thread of the host ever works with the wrong rights.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The user that tools work as. Cheap to clone.
#[derive(Clone)]
pub struct ToolUser(Arc<UserFacts>);

/// What is known of a user.
#[derive(Debug, Clone)]
pub struct UserFacts {
    /// The name, as the system spells it.
    pub name: String,
    /// The number of the user; never 0.
    pub uid: u32,
    /// The number of the primary group.
    pub gid: u32,
    /// The numbers of all groups, the primary one included.
    pub groups: Vec<u32>,
    /// The home directory, as the system says; it need not exist.
    pub home: PathBuf,
    /// A private directory of the user in which the host keeps what the user's programs work with; `None` where there is no place for one.
    pub folder: Option<PathBuf>,
    /// Makes the calling thread one of the user, for good: user, groups and no capability.
    pub become_user: fn(&UserFacts) -> io::Result<()>,
}

impl ToolUser {
    /// The user of which `facts` are known.
    pub fn new(facts: UserFacts) -> Self {
        Self(Arc::new(facts))
    }

    /// What is known of the user.
    pub fn facts(&self) -> &UserFacts {
        &self.0
    }

    /// Makes the calling thread one of the user, for good. For threads that do nothing else.
    ///
    /// Errors: the system refuses it; then the thread must not work for the user, nor for anybody else.
    pub fn take_thread(&self) -> io::Result<()> {
        (self.0.become_user)(&self.0)
    }

    /// Does `work` as the user, on a thread of its own that ends with it. Blocks meanwhile.
    ///
    /// Errors: the system refuses the thread or the change of user; then nothing was done.
    /// Limits: some 50 microseconds besides the work. A panic of the work is passed on.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("zeph-user".to_owned());
            let worker = thread.spawn_scoped(scope, || {
                self.take_thread()?;
                Ok(work())
            })?;
            match worker.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

/// Does `work` as `user`, or here where there is none.
///
/// Errors: as [`ToolUser::run`].
pub fn run_as<T: Send>(user: Option<&ToolUser>, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    match user {
        Some(user) => user.run(work),
        None => Ok(work()),
    }
}

impl fmt::Debug for ToolUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolUser")
            .field("name", &self.0.name)
            .field("uid", &self.0.uid)
            .finish_non_exhaustive()
    }
}
