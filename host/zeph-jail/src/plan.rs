//! The plan of one run: everything the inner stage does before it becomes the command.
//!
//! It travels as bytes over an inherited descriptor, never as arguments or variables, which others could read. The form is
//! private to one program file (the host embeds the inner stage it was built with), so it has no version.

use std::fmt;

#[cfg(test)]
mod tests;

/// Most bytes of a plan. Arguments and variables of one program cannot be larger than that on Linux.
pub const PLAN_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What the inner stage does, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What stands around the inner stage already.
    pub stage: Stage,
    /// Whether the kernel keeps signals within the run, so that all of it can be ended at once. Counts without namespaces.
    pub keeps_signals: bool,
    /// The descriptor to tell success and failure on.
    pub status: i32,
    /// Descriptors of files that take in a process that writes `0` to them: `tasks` or `cgroup.procs` of control groups.
    pub cgroups: Vec<i32>,
    /// Resource limits: the kernel's number of the resource, and the value.
    pub limits: Vec<(u32, u64)>,
    /// Places that must be what the host saw there; the mounts were made by path, and a path can be changed.
    pub checks: Vec<MountCheck>,
    /// Directories that only the command has, at most [`PLACES_MAX`](crate::PLACES_MAX): the host is handed their descriptors, in this order.
    pub places: Vec<Vec<u8>>,
    /// Where the command starts; empty: where this program was started.
    pub directory: Vec<u8>,
    /// What Landlock lets through; everything else is refused.
    pub rules: Vec<Rule>,
    /// Descriptors the command keeps: number now, number then.
    pub files: Vec<(i32, i32)>,
    /// The way out of a network that has no other; none where there is no such way.
    pub outlet: Option<Outlet>,
    /// How the host is told which paths the command asks for; none where it does not want to know.
    pub watch: Option<Watch>,
    /// A file that the inner stage makes for the command; none where there is none.
    pub made: Option<MadeFile>,
    /// The filter of system calls, as the kernel takes it.
    pub filter: Vec<u8>,
    /// The program, an absolute path.
    pub program: Vec<u8>,
    /// Its arguments, without its name.
    pub arguments: Vec<Vec<u8>>,
    /// Its whole environment, as `NAME=value`.
    pub environment: Vec<Vec<u8>>,
}

/// A port on the loopback of the command's own network, which the inner stage opens and the host listens on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlet {
    /// The descriptor of the socket over which the host is given the listening one.
    pub channel: i32,
    /// Variables of the command that name the port, as `NAME=value`: what stands before the number, and what stands behind it.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A filter that lets every call pass and tells the host of some. It refuses nothing, so that the kernel has none is no reason to end the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// The descriptor of the socket over which the host is given the one that the kernel tells it on, or the reason why there is none.
    pub channel: i32,
    /// The filter, as the kernel takes it.
    pub filter: Vec<u8>,
}

/// A file that nobody has the right to write to, made in a place that only the command has. Where it cannot be made the command runs
/// without it, and without its variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeFile {
    /// Where; nothing may be there.
    pub path: Vec<u8>,
    /// What it holds.
    pub bytes: Vec<u8>,
    /// The variable that tells the command of it, as `NAME=value`.
    pub variable: Vec<u8>,
}

/// What stands around the inner stage already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Namespaces and mounts. Capabilities must be gone already.
    Inside,
    /// Nothing: the inner stage gives up capabilities, makes a session itself, and stays behind to end what the command leaves.
    Alone,
    /// Nothing, and TCP must not work either.
    AloneWithoutNetwork,
}

/// A place that must be a mount of its own and the object the host saw there, reached without a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountCheck {
    /// Where.
    pub path: Vec<u8>,
    /// The number of its file system.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// How it must be mounted.
    pub mount: MountMode,
}

/// How a place must be mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountMode {
    /// As it likes.
    Any,
    /// Nothing can be written there.
    ReadOnly,
    /// Something else stands over it: the object the host saw there is what must not be found.
    Covered,
}

/// What Landlock lets through beneath one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// A file or a directory; one that does not exist grants nothing.
    pub path: Vec<u8>,
    /// What may be done there.
    pub access: PathAccess,
    /// The object it must be, by the number of its file system and its number there; `None` where the path cannot be led elsewhere.
    pub object: Option<(u64, u64)>,
}

/// What may be done beneath a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathAccess {
    /// Names of directories may be listed.
    List,
    /// Files may be read and run.
    Read,
    /// Everything but making devices.
    Write,
    /// Like `Write`, and sockets there may be reached: nothing of the host lies there.
    Private,
    /// Devices may be read, written and asked for their modes.
    Device,
}

/// The bytes are no plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadPlan;

impl fmt::Display for BadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the plan cannot be read")
    }
}

impl std::error::Error for BadPlan {}

impl Plan {
    /// Writes the plan.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 * 1024);
        number(&mut bytes, self.stage as u32);
        number(&mut bytes, self.keeps_signals.into());
        descriptor(&mut bytes, self.status);
        list(&mut bytes, &self.cgroups, |bytes, fd| {
            descriptor(bytes, *fd);
        });
        list(&mut bytes, &self.limits, |bytes, (resource, value)| {
            number(bytes, *resource);
            bytes.extend_from_slice(&value.to_le_bytes());
        });
        list(&mut bytes, &self.checks, |bytes, check| {
            text(bytes, &check.path);
            bytes.extend_from_slice(&check.device.to_le_bytes());
            bytes.extend_from_slice(&check.inode.to_le_bytes());
            number(bytes, check.mount as u32);
        });
        list(&mut bytes, &self.places, |bytes, one| text(bytes, one));
        text(&mut bytes, &self.directory);
        list(&mut bytes, &self.rules, |bytes, rule| {
            number(bytes, rule.access as u32);
            text(bytes, &rule.path);
            list(bytes, rule.object.as_slice(), |bytes, (device, inode)| {
                bytes.extend_from_slice(&device.to_le_bytes());
                bytes.extend_from_slice(&inode.to_le_bytes());
            });
        });
        list(&mut bytes, &self.files, |bytes, (now, then)| {
            descriptor(bytes, *now);
            descriptor(bytes, *then);
        });
        list(&mut bytes, self.outlet.as_slice(), |bytes, outlet| {
            descriptor(bytes, outlet.channel);
            list(bytes, &outlet.environment, |bytes, (before, behind)| {
                text(bytes, before);
                text(bytes, behind);
            });
        });
        list(&mut bytes, self.watch.as_slice(), |bytes, watch| {
            descriptor(bytes, watch.channel);
            text(bytes, &watch.filter);
        });
        list(&mut bytes, self.made.as_slice(), |bytes, made| {
            text(bytes, &made.path);
            text(bytes, &made.bytes);
            text(bytes, &made.variable);
        });
        text(&mut bytes, &self.filter);
        text(&mut bytes, &self.program);
        list(&mut bytes, &self.arguments, |bytes, one| text(bytes, one));
        list(&mut bytes, &self.environment, |bytes, one| text(bytes, one));
        bytes
    }

    /// Reads a plan.
    ///
    /// Errors: the bytes are no whole plan, or something follows it.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadPlan> {
        let mut input = Input { rest: bytes };
        let plan = Self {
            stage: match input.number()? {
                0 => Stage::Inside,
                1 => Stage::Alone,
                2 => Stage::AloneWithoutNetwork,
                _ => return Err(BadPlan),
            },
            keeps_signals: match input.number()? {
                0 => false,
                1 => true,
                _ => return Err(BadPlan),
            },
            status: input.descriptor()?,
            cgroups: input.list(Input::descriptor)?,
            limits: input.list(|input| Ok((input.number()?, input.long()?)))?,
            checks: input.list(Input::check)?,
            places: input.list(Input::text)?,
            directory: input.text()?,
            rules: input.list(Input::rule)?,
            files: input.list(|input| Ok((input.descriptor()?, input.descriptor()?)))?,
            outlet: input.at_most_one(Input::outlet)?,
            watch: input.at_most_one(Input::watch)?,
            made: input.at_most_one(Input::made)?,
            filter: input.text()?,
            program: input.text()?,
            arguments: input.list(Input::text)?,
            environment: input.list(Input::text)?,
        };
        match input.rest {
            [] => Ok(plan),
            _ => Err(BadPlan),
        }
    }
}

fn number(bytes: &mut Vec<u8>, value: u32) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

fn descriptor(bytes: &mut Vec<u8>, value: i32) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

fn text(bytes: &mut Vec<u8>, value: &[u8]) {
    length(bytes, value.len());
    bytes.extend_from_slice(value);
}

fn list<T>(bytes: &mut Vec<u8>, values: &[T], one: impl Fn(&mut Vec<u8>, &T)) {
    length(bytes, values.len());
    for value in values {
        one(bytes, value);
    }
}

/// A length that does not fit is one the reader refuses: nothing of 4 GiB fits in a plan.
fn length(bytes: &mut Vec<u8>, value: usize) {
    number(bytes, u32::try_from(value).unwrap_or(u32::MAX));
}

struct Input<'a> {
    rest: &'a [u8],
}

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadPlan> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(BadPlan)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn number(&mut self) -> Result<u32, BadPlan> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn descriptor(&mut self) -> Result<i32, BadPlan> {
        Ok(i32::from_le_bytes(self.take()?))
    }

    fn long(&mut self) -> Result<u64, BadPlan> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn text(&mut self) -> Result<Vec<u8>, BadPlan> {
        let length = self.number()? as usize;
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(BadPlan)?;
        self.rest = rest;
        Ok(taken.to_vec())
    }

    fn check(&mut self) -> Result<MountCheck, BadPlan> {
        Ok(MountCheck {
            path: self.text()?,
            device: self.long()?,
            inode: self.long()?,
            mount: match self.number()? {
                0 => MountMode::Any,
                1 => MountMode::ReadOnly,
                2 => MountMode::Covered,
                _ => return Err(BadPlan),
            },
        })
    }

    fn rule(&mut self) -> Result<Rule, BadPlan> {
        let access = match self.number()? {
            0 => PathAccess::List,
            1 => PathAccess::Read,
            2 => PathAccess::Write,
            3 => PathAccess::Private,
            4 => PathAccess::Device,
            _ => return Err(BadPlan),
        };
        let path = self.text()?;
        let object = self.at_most_one(|input| Ok((input.long()?, input.long()?)))?;
        Ok(Rule {
            path,
            access,
            object,
        })
    }

    fn outlet(&mut self) -> Result<Outlet, BadPlan> {
        Ok(Outlet {
            channel: self.descriptor()?,
            environment: self.list(|input| Ok((input.text()?, input.text()?)))?,
        })
    }

    fn watch(&mut self) -> Result<Watch, BadPlan> {
        Ok(Watch {
            channel: self.descriptor()?,
            filter: self.text()?,
        })
    }

    fn made(&mut self) -> Result<MadeFile, BadPlan> {
        Ok(MadeFile {
            path: self.text()?,
            bytes: self.text()?,
            variable: self.text()?,
        })
    }

    fn at_most_one<T>(
        &mut self,
        one: impl Fn(&mut Self) -> Result<T, BadPlan>,
    ) -> Result<Option<T>, BadPlan> {
        let mut all = self.list(one)?;
        let last = all.pop();
        match all.is_empty() {
            true => Ok(last),
            false => Err(BadPlan),
        }
    }

    fn list<T>(
        &mut self,
        one: impl Fn(&mut Self) -> Result<T, BadPlan>,
    ) -> Result<Vec<T>, BadPlan> {
        let length = self.number()? as usize;
        // Each entry takes four bytes at least: a length that lies is found before anything is reserved for it.
        if length > self.rest.len() / 4 {
            return Err(BadPlan);
        }
        (0..length).map(|_| one(self)).collect()
    }
}
