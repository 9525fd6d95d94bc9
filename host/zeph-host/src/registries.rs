//! The hosts that the package managers of this machine get packages from.
//!
//! A manager counts when its program is there. Its settings are read where it reads them itself: variables, its files in the home
//! directory, its files in the working directory. What they do not say is what the manager does without them. Only hosts are told:
//! what else stands in an address may be a password.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use zeph_core::network::{Destination, HTTP_PORT, HTTPS_PORT};

mod files;
mod logins;

pub(crate) use self::logins::RegistryLogin;

/// Where settings stand.
struct Places {
    env: BTreeMap<String, String>,
    home: PathBuf,
    /// The working directory and those above it.
    project: Vec<PathBuf>,
}

/// A package manager: its programs, and where it gets packages from.
struct PackageManager {
    /// One of them is enough.
    programs: &'static [&'static str],
    /// Settings that take the place of `usual`, most of all the first.
    chosen: fn(&Places) -> Vec<String>,
    /// What is used without those.
    usual: &'static [&'static str],
    /// Settings that are used besides.
    more: fn(&Places) -> Vec<String>,
}

const MANAGERS: [PackageManager; 8] = [
    PackageManager {
        programs: &["cargo"],
        chosen: files::cargo_replacement,
        usual: &["https://index.crates.io", "https://static.crates.io"],
        more: files::cargo_registries,
    },
    PackageManager {
        programs: &["rustup"],
        chosen: |places| places.variables(&["RUSTUP_DIST_SERVER", "RUSTUP_UPDATE_ROOT"]),
        usual: &["https://static.rust-lang.org"],
        more: |_| Vec::new(),
    },
    PackageManager {
        programs: &["npm", "pnpm"],
        chosen: files::npm_registry,
        usual: &["https://registry.npmjs.org"],
        more: files::npm_scopes,
    },
    PackageManager {
        programs: &["yarn"],
        chosen: files::yarn_registry,
        usual: &["https://registry.yarnpkg.com", "https://registry.npmjs.org"],
        more: |_| Vec::new(),
    },
    PackageManager {
        programs: &["pip", "pip3", "uv", "poetry"],
        chosen: files::python_index,
        usual: &["https://pypi.org", "https://files.pythonhosted.org"],
        more: files::python_more,
    },
    PackageManager {
        programs: &["go"],
        chosen: files::go_proxy,
        usual: &["https://proxy.golang.org", "https://sum.golang.org"],
        more: |_| Vec::new(),
    },
    PackageManager {
        programs: &["gem", "bundle"],
        chosen: files::gem_sources,
        usual: &["https://rubygems.org", "https://index.rubygems.org"],
        more: |_| Vec::new(),
    },
    PackageManager {
        programs: &["mvn", "gradle"],
        chosen: files::maven_mirrors,
        usual: &["https://repo.maven.apache.org"],
        more: files::maven_repositories,
    },
];

/// The hosts of the managers of this machine, as `allow_hosts` takes them, and the addresses it does not take.
///
/// Shape: `here` is the working directory, whose settings and those above it count.
pub(crate) fn of_machine(home: &Path, here: &Path) -> (BTreeSet<String>, BTreeSet<String>) {
    let places = Places {
        env: zeph_config::process_environment(),
        project: here.ancestors().map(Path::to_owned).collect(),
        home: home.to_owned(),
    };
    let programs = programs(&places.env);
    hosts(&places, &programs)
}

/// Where one package manager gets packages from, by the settings of the user: those of a project do not count.
#[derive(Debug)]
pub(crate) struct Registries {
    /// The hosts, as `allow_hosts` takes them.
    pub(crate) hosts: BTreeSet<String>,
    /// Addresses that cannot be allowed, since they have no name.
    pub(crate) unusable: BTreeSet<String>,
    /// What authorizes requests, at most one for a host.
    pub(crate) logins: Vec<RegistryLogin>,
    /// Variables by which the manager finds them without the files of the user, and without credentials.
    pub(crate) variables: Vec<(String, String)>,
}

/// Where `program`, `npm`, `pip` or `uv`, gets packages from.
pub(crate) fn of_program(program: &str, home: &Path) -> Registries {
    Registries::of(
        program,
        &Places {
            env: zeph_config::process_environment(),
            project: Vec::new(),
            home: home.to_owned(),
        },
    )
}

impl Registries {
    fn of(program: &str, places: &Places) -> Self {
        let (hosts, unusable) = hosts(places, &BTreeSet::from([program.to_owned()]));
        let (logins, variables) = match program {
            "npm" => (logins::of_npm(places), logins::npm_variables(places)),
            _ => (logins::of_python(places), logins::python_variables(places)),
        };
        Self {
            logins: logins
                .into_iter()
                .filter(|login| hosts.contains(&login.host))
                .collect(),
            hosts,
            unusable,
            variables,
        }
    }
}

/// The hosts of the managers among `programs`, as `allow_hosts` takes them, and the addresses it does not take.
fn hosts(places: &Places, programs: &BTreeSet<String>) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut hosts, mut unusable) = (BTreeSet::new(), BTreeSet::new());
    let is_there = |manager: &&PackageManager| {
        manager
            .programs
            .iter()
            .any(|program| programs.contains(*program))
    };
    for manager in MANAGERS.iter().filter(is_there) {
        let mut urls = (manager.chosen)(places);
        // Naming the usual one allows files where it keeps them, too.
        let host = |url: &str| destination(url).map(|it| it.host.to_string());
        let is_usual = |url: &String| manager.usual.iter().any(|usual| host(usual) == host(url));
        if urls.is_empty() || urls.iter().any(is_usual) {
            urls.extend(manager.usual.iter().map(|&url| url.to_owned()));
        }
        urls.extend((manager.more)(places));
        for destination in urls.iter().filter_map(|url| destination(url)) {
            match destination.host.name() {
                Some(_) => hosts.insert(written(&destination)),
                None => unusable.insert(destination.to_string()),
            };
        }
    }
    (hosts, unusable)
}

/// The host of an address such as `sparse+https://user:password@host:8443/index/`; none of what is no address of the web.
fn destination(url: &str) -> Option<Destination> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let port = match scheme.rsplit('+').next()? {
        "https" => HTTPS_PORT,
        "http" => HTTP_PORT,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let (_, authority) = authority.rsplit_once('@').unwrap_or(("", authority));
    Destination::parse(authority, port).ok()
}

fn written(destination: &Destination) -> String {
    match destination.port {
        HTTPS_PORT => destination.host.to_string(),
        _ => destination.to_string(),
    }
}

/// The names of all programs on the search path that a manager has.
fn programs(env: &BTreeMap<String, String>) -> BTreeSet<String> {
    let path = env.get("PATH").map(String::as_str).unwrap_or_default();
    let folders: Vec<&Path> = path.split(':').map(Path::new).collect();
    let names = MANAGERS.iter().flat_map(|manager| manager.programs);
    names
        .filter(|name| folders.iter().any(|folder| folder.join(name).is_file()))
        .map(|&name| name.to_owned())
        .collect()
}

impl Places {
    /// The values of variables that are set and not empty.
    fn variables(&self, names: &[&str]) -> Vec<String> {
        let values = names.iter().filter_map(|name| self.env.get(*name));
        let values = values.filter(|value| !value.is_empty());
        values.cloned().collect()
    }

    /// A file in the home directory, or where a variable says.
    fn home_file(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    /// Files of that name in the working directory and above.
    fn project_files(&self, name: &str) -> impl Iterator<Item = PathBuf> {
        self.project.iter().map(move |folder| folder.join(name))
    }
}

#[cfg(test)]
mod tests;
