//! What of a repository that a command has made, or led elsewhere, would run as soon as git is used there: hooks, a
//! configuration that names programs, pointers to what is not the command's to lead to.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::git::{self, pointed};
use super::mount::within_any;
use crate::gitkeys;

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
    let hooks = git.join("hooks");
    let mut found: Vec<PathBuf> = match hooks.symlink_metadata() {
        Ok(about) if about.is_dir() => {
            let entries = std::fs::read_dir(&hooks).into_iter().flatten().flatten();
            let entries = entries.map(|entry| entry.path());
            entries.filter(|hook| is_hook(hook)).collect()
        }
        Ok(_) => vec![hooks],
        Err(_) => Vec::new(),
    };
    found.sort();
    let configs = ["config", "config.worktree"].map(|name| git.join(name));
    found.extend(configs.into_iter().filter(|config| is_obeyed(config)));
    found
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
    let content = content.strip_prefix('\u{feff}').unwrap_or(content);
    let mut of_pagers = false;
    content.lines().map(str::trim).any(|line| {
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
        std::iter::once(line)
            .chain(ends)
            .any(|part| runs(part.trim(), of_pagers))
    })
}

fn runs(line: &str, of_pagers: bool) -> bool {
    let (key, value) = line.split_once('=').unwrap_or((line, "true"));
    let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
    let is_switch = ["true", "false", "yes", "no"].contains(&value);
    let is_key = !key.is_empty() && !key.starts_with(['[', '#', ';']);
    let names = gitkeys::runs(&key) || (of_pagers && is_key);
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
