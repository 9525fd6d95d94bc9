//! Globs over the paths of files: which of them a search is about.

use zeph_plugin::ToolError;

/// Longest pattern, in bytes.
const PATTERN_MAX: usize = 500;
/// Most patterns that the braces of one come to.
const ALTERNATIVES_MAX: usize = 100;

/// A glob. `*` and `?` stop at a slash, `**` does not; `{a,b}` is either. Without a slash it is about names, at any depth. A name at its end
/// may be that of a directory: all below it is meant.
#[derive(Debug)]
pub struct Glob {
    alternatives: Vec<Vec<String>>,
}

impl Glob {
    /// Reads a pattern over the files in `searched`, an absolute path.
    ///
    /// Errors: it is empty or too long, a brace of it has no partner, it contains `..` or begins with `!`.
    pub fn parse(pattern: &str, searched: &str) -> Result<Self, ToolError> {
        let invalid = |why: &str| {
            ToolError::invalid_parameters(format!("`file_pattern` is not a valid glob: {why}"))
        };
        if pattern.len() > PATTERN_MAX {
            return Err(invalid(&format!("it is longer than {PATTERN_MAX} bytes")));
        }
        let pattern = pattern.trim();
        if pattern.split(['/', '{', ',', '}']).any(|part| part == "..") {
            return Err(invalid(
                "it is relative to `path` and cannot contain `..`; change `path` instead",
            ));
        }
        if pattern.starts_with('!') {
            return Err(invalid("files cannot be left out with `!`"));
        }
        let mut open = vec![relative(pattern, searched).to_owned()];
        let mut alternatives = Vec::new();
        while let Some(pattern) = open.pop() {
            match expanded(&pattern).map_err(invalid)? {
                Some(more) => open.extend(more),
                None => alternatives.extend(meant(&pattern)),
            }
            if open.len() + alternatives.len() > ALTERNATIVES_MAX {
                return Err(invalid("its braces come to too many patterns"));
            }
        }
        match alternatives.iter().any(Vec::is_empty) {
            true => Err(invalid("it is empty")),
            false => Ok(Self { alternatives }),
        }
    }

    /// Whether a file is meant. `below` is the directory that paths of the pattern are relative to; a file outside is not meant.
    pub fn matches(&self, path: &str, below: &str) -> bool {
        let Some(rest) = path.strip_prefix(below) else {
            return false;
        };
        let parts: Vec<&str> = rest.trim_start_matches('/').split('/').collect();
        let mut alternatives = self.alternatives.iter();
        alternatives.any(|pattern| are_matched(pattern, &parts))
    }
}

/// The patterns that the first braces come to, if there are any.
///
/// Errors: a brace has no partner.
fn expanded(pattern: &str) -> Result<Option<Vec<String>>, &'static str> {
    let Some(begin) = pattern.find('{') else {
        return match pattern.contains('}') {
            true => Err("a `}` has no `{`"),
            false => Ok(None),
        };
    };
    let (mut depth, mut from, mut parts) = (0_u32, begin + 1, Vec::new());
    for (at, letter) in pattern.char_indices().skip_while(|(at, _)| *at < begin) {
        match letter {
            '{' => depth += 1,
            ',' if depth == 1 => {
                parts.push(&pattern[from..at]);
                from = at + 1;
            }
            '}' if depth == 1 => {
                parts.push(&pattern[from..at]);
                let (before, after) = (&pattern[..begin], &pattern[at + 1..]);
                let whole = |part: &str| format!("{before}{part}{after}");
                return Ok(Some(parts.into_iter().map(whole).collect()));
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    Err("a `{` has no `}`")
}

/// The pattern without the path of the searched directory before it, as models sometimes write it.
fn relative<'a>(pattern: &'a str, searched: &str) -> &'a str {
    let below = pattern.strip_prefix(searched.trim_end_matches('/'));
    // The slash stays: what follows is a path.
    let below = below.filter(|below| below.starts_with('/'));
    below.unwrap_or(pattern)
}

/// The parts of a pattern, and with a name at its end once more for all below a directory of that name.
fn meant(pattern: &str) -> Vec<Vec<String>> {
    let file = segments(pattern);
    let last = file.last();
    match last.is_some_and(|last| !last.contains(['*', '?'])) {
        true => {
            let all_below = [file.as_slice(), &["**".to_owned()]].concat();
            vec![file, all_below]
        }
        false => vec![file],
    }
}

/// The parts of a pattern between slashes.
fn segments(pattern: &str) -> Vec<String> {
    let is_name = !pattern.contains('/');
    let parts = pattern
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".");
    let mut segments: Vec<String> = parts.map(str::to_owned).collect();
    if is_name && !segments.is_empty() {
        segments.insert(0, "**".to_owned());
    }
    // One stands for any number of them.
    segments.dedup_by(|one, other| one == "**" && other == "**");
    segments
}

/// Whether the parts of a path fit: each pattern one part, `**` any number. Each `**` takes as few as it can, and more when what follows
/// does not fit: time is the product of both lengths at most.
fn are_matched(pattern: &[String], parts: &[&str]) -> bool {
    goes_on(
        pattern,
        parts,
        |one| one == "**",
        |one, part| {
            let (pattern, part): (Vec<char>, Vec<char>) =
                (one.chars().collect(), part.chars().collect());
            goes_on(
                &pattern,
                &part,
                |one| *one == '*',
                |one, letter| *one == '?' || one == letter,
            )
        },
    )
}

/// Matches items one by one; one that `is_any` stands for any number of them.
fn goes_on<P, T>(
    pattern: &[P],
    items: &[T],
    is_any: impl Fn(&P) -> bool,
    fits: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut at, mut item) = (0, 0);
    // The last one that stands for any number, and the first item that it does not take.
    let mut last: Option<(usize, usize)> = None;
    while item < items.len() {
        match pattern.get(at) {
            Some(one) if is_any(one) => {
                last = Some((at, item));
                at += 1;
            }
            Some(one) if fits(one, &items[item]) => {
                at += 1;
                item += 1;
            }
            _ => {
                let Some((any, taken)) = &mut last else {
                    return false;
                };
                *taken += 1;
                (at, item) = (*any + 1, *taken);
            }
        }
    }
    pattern[at..].iter().all(is_any)
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn files_are_meant_by_name_or_by_path() {
        for (pattern, path, below, expected) in [
            ("*.py", "a.py", "", true),
            ("*.py", "src/deep/a.py", "", true),
            ("*.py", "src/a.pyc", "", false),
            ("*.py", "src/a.rs", "", false),
            ("src/*.rs", "src/a.rs", "", true),
            ("src/*.rs", "src/deep/a.rs", "", false),
            ("src/**/*.rs", "src/a.rs", "", true),
            ("src/**/*.rs", "src/deep/er/a.rs", "", true),
            ("./src/**", "src/deep/a.rs", "", true),
            ("**/test_*.py", "a/b/test_x.py", "", true),
            ("**/a/**/b/*.c", "x/a/y/a/b/z/b/f.c", "", true),
            ("*.{ts,tsx}", "web/a.tsx", "", true),
            ("{src,lib}/**/*.{c,{h,hpp}}", "lib/x/a.hpp", "", true),
            ("*.{ts,tsx}", "web/a.js", "", false),
            ("f?.rs", "fé.rs", "", true),
            ("f?.rs", "f.rs", "", false),
            ("src/*.rs", "crate/src/a.rs", "crate", true),
            ("crate/src/*.rs", "crate/src/a.rs", "crate", false),
            ("main.rs", "src/main.rs", "", true),
            ("src", "src/deep/a.rs", "", true),
            ("src/", "src/deep/a.rs", "", true),
            ("deep", "src/deep/a.rs", "", true),
            ("src", "lib/a.rs", "", false),
            ("src/[id].ts", "src/[id].ts", "", true),
            ("/w/src/**", "src/deep/a.rs", "", true),
            ("/w/*.rs", "a.rs", "", true),
            ("/w/*.rs", "src/a.rs", "", false),
            ("/other/*.rs", "src/a.rs", "", false),
            ("*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "", false),
        ] {
            let glob = Glob::parse(pattern, "/w").unwrap();
            assert_eq!(glob.matches(path, below), expected, "{pattern} {path}");
        }
        let many = "{a,b}".repeat(10);
        let long = "x".repeat(501);
        for wrong in [
            "",
            " ",
            "/",
            "a{b",
            "a}b",
            "../src/**",
            "{..,a}/b",
            "!*.py",
            &many,
            &long,
        ] {
            assert!(Glob::parse(wrong, "/w").is_err(), "{wrong}");
        }
    }
}
