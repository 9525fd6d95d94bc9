//! What of a repository that a command has made, or led elsewhere, would run as soon as git is used there: hooks, a
//! configuration that names programs, pointers to what is not the command's to lead to.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use zeph_core::git_config::{self, GitSetting, settings};

use super::git::{self, pointed};
use super::mount::within_any;

/// Configurations in a git directory.
const CONFIGS: [&str; 2] = ["config", "config.worktree"];

/// What git in `work` would obey and nobody but the command made. `guarded` are git directories that no command can have changed
/// what is obeyed in; `roots` the directories that commands write to.
pub(super) fn of_work(work: &Path, roots: &[PathBuf], guarded: &HashSet<PathBuf>) -> Vec<PathBuf> {
    let pointer = work.join(".git");
    let Ok(about) = pointer.symlink_metadata() else {
        return of_directory(work, roots, guarded);
    };
    if about.is_dir() {
        return of_directory(&pointer, roots, guarded);
    }
    let target = git::target_of(&pointer, &about);
    let leads = |target: &PathBuf| within_any(target, roots) || guarded.contains(target);
    // One that leads nowhere would be filled by a later command; one that leads outside is none that git made here.
    match target.filter(|target| leads(target) && target.join("HEAD").symlink_metadata().is_ok()) {
        Some(target) => of_directory(&target, roots, guarded),
        None => vec![pointer],
    }
}

/// The same for a git directory, with the common one it names. Links are taken for what they are: what they lead to may not be the
/// command's.
pub(super) fn of_directory(
    git: &Path,
    roots: &[PathBuf],
    guarded: &HashSet<PathBuf>,
) -> Vec<PathBuf> {
    if guarded.contains(git) {
        return Vec::new();
    }
    let mut found = obeyed_in(git);
    let pointer = git.join("commondir");
    if pointer.symlink_metadata().is_ok() {
        match pointed(&pointer, "") {
            Some(common) if guarded.contains(&common) => {}
            Some(common) if within_any(&common, roots) => found.extend(obeyed_in(&common)),
            _ => found.push(pointer),
        }
    }
    found
}

fn obeyed_in(git: &Path) -> Vec<PathBuf> {
    let files = files_in(git).into_iter();
    files
        .filter(|file| !is_config(file) || is_obeyed(file))
        .collect()
}

/// Hooks and remotes of a git directory, and configurations whether they name programs or not.
pub(super) fn files_in(git: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for name in ["hooks", "remotes", "branches"] {
        let folder = git.join(name);
        match folder.symlink_metadata() {
            Ok(about) if about.is_dir() => {
                let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
                let entries = entries.map(|entry| entry.path());
                let mut entries: Vec<PathBuf> = entries.filter(|entry| is_hook(entry)).collect();
                entries.sort();
                found.extend(entries);
            }
            Ok(_) => found.push(folder),
            Err(_) => {}
        }
    }
    let configs = CONFIGS.map(|name| git.join(name));
    found.extend(
        configs
            .into_iter()
            .filter(|file| file.symlink_metadata().is_ok()),
    );
    found
}

fn is_config(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| CONFIGS.iter().any(|config| name == *config))
}

/// What git obeys, as it was at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ObeyedState {
    /// The content of a file, and its permissions.
    File { bytes: Vec<u8>, mode: u32 },
    /// Where a symbolic link leads.
    Link(PathBuf),
}

impl ObeyedState {
    /// Of what stands at `path`; `None` for anything else, and for a file that is too large.
    pub(super) fn now(path: &Path) -> Option<Self> {
        let about = path.symlink_metadata().ok()?;
        if about.is_symlink() {
            return std::fs::read_link(path).ok().map(Self::Link);
        }
        let bytes = about.is_file().then(|| git::small_bytes(path))??;
        Some(Self::File {
            bytes,
            mode: about.mode(),
        })
    }

    /// Whether git runs what it ran of `then`: all of a hook, of a configuration the programs that it names.
    pub(super) fn runs_what(&self, then: &Self, path: &Path) -> bool {
        let (
            Self::File { bytes, mode },
            Self::File {
                bytes: before,
                mode: mode_before,
            },
        ) = (self, then)
        else {
            return self == then;
        };
        // A file that nobody may execute is no hook.
        let may_run_more = mode & !mode_before & 0o111 != 0;
        if bytes == before || !is_config(path) {
            return bytes == before && !may_run_more;
        }
        let [now, then] = [bytes, before].map(|bytes| String::from_utf8_lossy(bytes));
        runs_of(&now) == runs_of(&then)
    }
}

/// The lines that name programs, and the settings that do.
fn runs_of(content: &str) -> (Vec<&str>, Vec<GitSetting>) {
    let is_run = |setting: &GitSetting| {
        let name = setting.name.as_str();
        let value = setting.value.as_deref().unwrap_or_default();
        let in_section = ["pager.", "protocol."];
        git_config::runs(setting.key())
            || in_section.iter().any(|section| name.starts_with(section))
            || value.starts_with('!')
            || value.contains("ext::")
            || name.contains("ext::")
    };
    let settings = settings(content).into_iter();
    (
        program_lines(content).collect(),
        settings.filter(is_run).collect(),
    )
}

/// Whether a file is an example of a hook, which never runs.
pub(super) fn is_sample(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "sample")
}

fn is_hook(path: &Path) -> bool {
    let end = path.extension().map(OsStr::to_string_lossy);
    end.is_none_or(|end| end != "sample" && !end.starts_with("held-back"))
}

/// Whether a configuration names programs, or cannot be looked at as git would.
fn is_obeyed(config: &Path) -> bool {
    match config.symlink_metadata() {
        Err(_) => false,
        Ok(about) if !about.is_file() => true,
        Ok(_) => git::small(config).is_none_or(|content| names_programs(&content)),
    }
}

fn names_programs(content: &str) -> bool {
    program_lines(content).next().is_some()
}

fn program_lines(content: &str) -> impl Iterator<Item = &str> {
    let content = content.strip_prefix('\u{feff}').unwrap_or(content);
    let mut of_pagers = false;
    content.lines().map(str::trim).filter(move |line| {
        if line.starts_with('[') {
            let line = line.to_ascii_lowercase();
            of_pagers = line.contains("[pager");
            if line.contains("protocol") && line.contains("ext") {
                return true;
            }
        }
        // A key may stand behind its section, whose name may hold any character.
        let ends = line.match_indices(']').map(|(at, _)| &line[at + 1..]);
        let ends = ends.filter(|_| line.starts_with('['));
        std::iter::once(*line)
            .chain(ends)
            .any(|part| runs(part.trim(), of_pagers))
    })
}

fn runs(line: &str, of_pagers: bool) -> bool {
    let (key, value) = line.split_once('=').unwrap_or((line, "true"));
    let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
    let is_switch = ["true", "false", "yes", "no"].contains(&value);
    let is_key = !key.is_empty() && !key.starts_with(['[', '#', ';']);
    let names = git_config::runs(&key) || (of_pagers && is_key);
    // A value may begin on the line after its key.
    let shells = [value, line].map(|text| text.trim_matches('"').starts_with('!'));
    (names && !is_switch) || shells.contains(&true) || line.contains("ext::")
}

#[cfg(test)]
mod tests {
    use super::names_programs;

    #[test]
    fn what_names_programs_is_seen() {
        for (content, expect) in [
            ("[core]\n\tbare = false\n\tfilemode = true\n", false),
            (
                "[remote \"o\"]\n\turl = https://x/y.git\n\tfetch = +refs/heads/*:refs/remotes/o/*\n",
                false,
            ),
            (
                "[core]\n\tworktree = ../../../sub\n[submodule]\n\tactive = .\n",
                false,
            ),
            (
                "[core]\n\tfsmonitor = true\n[pager]\n\tlog = false\n",
                false,
            ),
            ("[core]\n\tfsmonitor = evil\n", true),
            ("[core]\n\tfsmonitor = [ -n x ]\n", true),
            ("[core] PAGER=evil", true),
            ("\u{feff}[core] pager=evil", true),
            ("[a \"]\"][core] pager = evil", true),
            ("[pager]\n\tlog = evil\n", true),
            ("[alias]\n\tst = !evil\n", true),
            ("[alias]\n\tst = \\\n!evil\n", true),
            ("[alias]\n\tst = \"!evil\"\n", true),
            ("[include]\n\tpath = ../evil\n", true),
            ("[protocol \"ext\"]\n\tallow = always\n", true),
            ("[remote \"o\"]\n\turl = ext::evil\n", true),
            ("[interactive]\n\tdiffFilter = evil\n", true),
        ] {
            assert_eq!(names_programs(content), expect, "{content}");
        }
    }
}
