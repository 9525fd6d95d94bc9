//! What a call asked of the file system and what it was told, so that the host can find out whether it would be told the same again.
//!
//! Kept are questions (a path, and where it starts) and answers (which object and in which state, or that there is none), not
//! handles. Asking again goes the way of every operation of a guest, so links, renames, names that appeared, hidden names and
//! rights count as they are by then. Only what a plugin may see without changing anything is written down; whatever else
//! happens spoils the log, and so does an object whose times could not tell of a change right after: one that changed within a
//! tick of its file system's clock, or on a file system whose clock is not this machine's.
//!
//! Times of access are not compared, because reading changes them. What another program changes through a memory mapping shows when
//! the kernel writes it out, as for every program that looks at times.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use zeph_core::capability::FsRights;
use zeph_core::user::run_as;

use super::allowance::Allowance;
use super::error::{Code, Fail, FsOutcome};
use super::handle::DirHandle;
use super::path::GuestPath;
use super::policy::{FsPolicy, RootId};
use super::resolve::ResolvedObject;
use super::sys::{self, FileId, Meta, Moment};
use super::walk;

/// Most questions of one call. To ask as many again takes some ten milliseconds; a call that looks at more is made anew.
const QUESTIONS_MAX: usize = 4_096;

/// Most questions that are asked again in less time than a thread is woken in.
const BRIEF_QUESTIONS_MAX: usize = 8;

/// Most bytes of all their paths.
const PATH_BYTES_MAX: usize = 512 * 1024;

/// Nanoseconds that the clock of a file system may stand still; twice the slowest tick of Linux.
const TICK: i64 = 20_000_000;

/// How long ago a change must lie on a file system that keeps whole seconds only, or every other one.
const COARSE_TICK: i64 = 2_000_000_000 + TICK;

/// Everything a call was told, in the order in which it asked.
#[derive(Debug, Default)]
pub struct Touched {
    questions: Vec<Question>,
    path_bytes: usize,
    /// Roots whose clock is this machine's.
    local: Vec<RootId>,
    /// When servers stop vouching for what they told besides.
    until: Option<Instant>,
}

/// One question and its answer.
#[derive(Debug)]
struct Question {
    origin: Origin,
    path: Box<str>,
    follow: bool,
    answer: Answer,
    /// The last question that starts at what was found; its own number when none does.
    last_use: u32,
}

/// Where a path starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Root(RootId),
    /// What the question of this number found.
    Found(u32),
}

/// What a question was answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// An object of which nothing but its identity was told.
    Object(RootId, FileId),
    /// An object whose content or description was told.
    State(RootId, State),
    Failed(Code),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    id: FileId,
    size: u64,
    modified: Moment,
    changed: Moment,
}

/// How much of an object is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Identity,
    State,
}

/// A question as it is asked. Without an origin it cannot be asked again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) origin: Option<Origin>,
    pub(super) path: &'a str,
    pub(super) follow: bool,
}

/// The log of one call, shared by what works for it. By default nothing is written down, which costs nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct TouchLog(Option<Arc<Mutex<Option<Touched>>>>);

impl State {
    fn of(meta: &Meta) -> Self {
        Self {
            id: meta.id,
            size: meta.size,
            modified: meta.modified,
            changed: meta.changed,
        }
    }
}

impl TouchLog {
    /// An empty log.
    pub(super) fn open() -> Self {
        Self(Some(Arc::new(Mutex::new(Some(Touched::default())))))
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// What was written down; none when it does not tell everything.
    pub(super) fn take(&self) -> Option<Touched> {
        let log = self.0.as_ref()?;
        log.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Something happened that cannot be asked again.
    pub(super) fn spoil(&self) {
        drop(self.take());
    }

    /// An object of `root` was found. Gives the number of the question.
    pub(super) fn found(
        &self,
        policy: &FsPolicy,
        asked: Asked<'_>,
        (root, meta): (RootId, &Meta),
        told: Told,
    ) -> Option<u32> {
        self.note(|log| log.found(policy, asked, (root, meta), told))
    }

    /// What was looked for failed with `code`.
    pub(super) fn failed(&self, asked: Asked<'_>, code: Code) {
        self.note(|log| log.add(asked, Answer::Failed(code)));
    }

    /// A path was followed to what it leads to, or not. Gives the number of the question when it was.
    pub(super) fn reached(
        &self,
        policy: &FsPolicy,
        asked: Asked<'_>,
        outcome: &FsOutcome<ResolvedObject>,
    ) -> Option<u32> {
        match outcome {
            _ if !self.is_open() => None,
            Ok(object) => {
                let told = match object.meta.is_dir() {
                    true => Told::Identity,
                    false => Told::State,
                };
                self.found(policy, asked, (object.root, &object.meta), told)
            }
            Err(fail) => {
                self.refused(asked, fail);
                None
            }
        }
    }

    /// A question ended in `fail`.
    pub(super) fn refused(&self, asked: Asked<'_>, fail: &Fail) {
        match fail {
            Fail::Code(code) => self.failed(asked, *code),
            Fail::Refused(_) | Fail::Obeyed(_) | Fail::Trap(_) => self.spoil(),
        }
    }

    /// Where a walk that names `root` begins.
    pub(super) fn located(
        &self,
        policy: &FsPolicy,
        root: &str,
        object: &ResolvedObject,
    ) -> Option<u32> {
        if !self.is_open() {
            return None;
        }
        let Some((id, below)) = walk::place(policy, root) else {
            self.spoil();
            return None;
        };
        let asked = Asked {
            origin: Some(Origin::Root(id)),
            path: if below.is_empty() { "." } else { &below },
            follow: true,
        };
        self.found(policy, asked, (object.root, &object.meta), Told::State)
    }

    /// Writes something down; what cannot be written down spoils the log.
    fn note(&self, write: impl FnOnce(&mut Touched) -> Option<u32>) -> Option<u32> {
        let mut log = self.0.as_ref()?.lock();
        let log = log.as_deref_mut().ok()?;
        let noted = write(log.as_mut()?);
        if noted.is_none() {
            *log = None;
        }
        noted
    }
}

impl Touched {
    /// Whether a call under `policy`, which gives the same rights as that of the call that was watched, would be told the same now.
    ///
    /// Blocks: it looks at every object anew.
    pub fn holds(&self, policy: &FsPolicy) -> bool {
        run_as(policy.user(), || self.is_so(policy)).unwrap_or(false)
    }

    /// Whether [`holds`](Self::holds) takes some microseconds only: it asks little, of file systems of this machine, and no other user has to.
    pub fn is_brief(&self, policy: &FsPolicy) -> bool {
        let is_local = |question: &Question| match question.origin {
            Origin::Root(root) => self.local.contains(&root),
            Origin::Found(_) => true,
        };
        let is_little = self.questions.len() <= BRIEF_QUESTIONS_MAX;
        is_little && self.questions.iter().all(is_local) && policy.user().is_none()
    }

    fn is_so(&self, policy: &FsPolicy) -> bool {
        if self.until.is_some_and(|until| until <= Instant::now()) {
            return false;
        }
        let allowance = Allowance::default();
        let mut starts: HashMap<u32, DirHandle> = HashMap::new();
        for (number, question) in (0u32..).zip(&self.questions) {
            let Some(object) = question.holds(policy, &starts) else {
                return false;
            };
            if let Origin::Found(start) = question.origin
                && self.questions[start as usize].last_use == number
            {
                starts.remove(&start);
            }
            if question.last_use == number {
                continue;
            }
            let held = object.map(|object| (object.root, allowance.hold(object.fd)));
            let Some((root, Ok(held))) = held else {
                return false;
            };
            starts.insert(number, DirHandle::below(held, root, Some(number)));
        }
        true
    }

    /// The same of a call that was also told something that holds until then.
    #[must_use]
    pub(crate) fn until(self, until: Instant) -> Self {
        Self {
            until: Some(until),
            ..self
        }
    }

    /// Whether it was told anything by servers.
    pub fn is_from_afar(&self) -> bool {
        self.until.is_some()
    }

    /// Bytes it takes in memory, roughly.
    pub fn bytes(&self) -> usize {
        self.questions.len() * size_of::<Question>() + self.path_bytes
    }

    fn found(
        &mut self,
        policy: &FsPolicy,
        asked: Asked<'_>,
        (root, meta): (RootId, &Meta),
        told: Told,
    ) -> Option<u32> {
        let answer = match told {
            Told::Identity => Answer::Object(root, meta.id),
            Told::State if self.can_trust(policy, root, meta) => {
                Answer::State(root, State::of(meta))
            }
            Told::State => return None,
        };
        self.add(asked, answer)
    }

    fn add(&mut self, asked: Asked<'_>, answer: Answer) -> Option<u32> {
        let origin = asked.origin?;
        let number = u32::try_from(self.questions.len()).ok()?;
        // A guest that looks at a file before it opens it asks the same twice; told the same twice, once is enough.
        if self
            .questions
            .last()
            .is_some_and(|last| last.is_same(origin, asked, answer))
        {
            return number.checked_sub(1);
        }
        self.path_bytes += asked.path.len();
        if self.questions.len() >= QUESTIONS_MAX || self.path_bytes > PATH_BYTES_MAX {
            return None;
        }
        if let Origin::Found(start) = origin {
            self.questions.get_mut(start as usize)?.last_use = number;
        }
        self.questions.push(Question {
            origin,
            path: asked.path.into(),
            follow: asked.follow,
            answer,
            last_use: number,
        });
        Some(number)
    }

    /// Whether every later change of the object will show in its times.
    fn can_trust(&mut self, policy: &FsPolicy, root: RootId, meta: &Meta) -> bool {
        let is_local = self.local.contains(&root) || {
            let handle = policy.root(root).handle();
            let is_local = handle.is_some_and(sys::is_local);
            self.local.extend(is_local.then_some(root));
            is_local
        };
        // Another file system inside a root may be anything.
        is_local && meta.id.dev == policy.root(root).dev && is_settled(meta)
    }
}

impl Question {
    /// Whether it was asked and answered so.
    fn is_same(&self, origin: Origin, asked: Asked<'_>, answer: Answer) -> bool {
        self.origin == origin
            && *self.path == *asked.path
            && self.follow == asked.follow
            && self.answer == answer
    }

    /// Asks again. None when the answer is another one now; else what was found, if anything was.
    fn holds(
        &self,
        policy: &FsPolicy,
        starts: &HashMap<u32, DirHandle>,
    ) -> Option<Option<ResolvedObject>> {
        let root;
        let start = match self.origin {
            Origin::Found(number) => starts.get(&number)?,
            Origin::Root(id) => {
                root = DirHandle::top(id);
                &root
            }
        };
        let path = GuestPath::parse(&self.path).ok()?;
        let found = policy.reach(start.asking(FsRights::READ), path, self.follow);
        match (self.answer, found) {
            (Answer::Failed(code), Err(Fail::Code(now))) if code == now => Some(None),
            (Answer::Object(root, id), Ok(found)) if root == found.root && id == found.meta.id => {
                Some(Some(found))
            }
            (Answer::State(root, state), Ok(found))
                if root == found.root && state == State::of(&found.meta) =>
            {
                Some(Some(found))
            }
            _ => None,
        }
    }
}

/// Whether the object changed so long ago that a change from now on gets another time.
fn is_settled(meta: &Meta) -> bool {
    let now = clock_gettime(ClockId::Realtime);
    let (seconds, nanoseconds) = meta.changed;
    let age = (i128::from(now.tv_sec) - i128::from(seconds)) * 1_000_000_000
        + (i128::from(now.tv_nsec) - i128::from(nanoseconds));
    let tick = match nanoseconds {
        0 => COARSE_TICK,
        _ => TICK,
    };
    age > i128::from(tick)
}
