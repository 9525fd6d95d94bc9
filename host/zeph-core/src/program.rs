//! What a grant says about a program: its bare name, and which arguments it may get.
//!
//! Shape: words with one space between them, such as `cargo check --message-format=json` or `git log --oneline **`. The first is the
//! program, the others say what its arguments may be, from the first to the last:
//!
//! | word | stands for |
//! |---|---|
//! | `*` | one argument that is no option |
//! | `**`, at the end | any number of such |
//! | `--name=*` | that option with any value |
//! | anything else | exactly itself |
//!
//! A name alone allows any arguments. No option is ever allowed by `*`: a value of the caller's choice can become a path, never a switch.

/// First letters of arguments that programs take for more than a value: options, a toolchain of cargo, a file of further arguments.
const SWITCHES: [char; 3] = ['-', '+', '@'];

/// Whether `pattern` lets `program` run with `arguments`.
pub fn allows(pattern: &str, program: &str, arguments: &[String]) -> bool {
    let (name, words) = split(pattern);
    if name != program {
        return false;
    }
    let Some(words) = words else { return true };
    let (words, is_open) = closed(&words);
    let n_words = words.len();
    let fits = |(word, argument): (&&str, &String)| fits(word, argument);
    let is_as_long = match is_open {
        true => arguments.len() >= n_words,
        false => arguments.len() == n_words,
    };
    is_as_long
        && words.iter().zip(arguments).all(fits)
        && arguments[n_words..].iter().all(|more| is_value(more))
}

/// Whether whatever `inner` allows is allowed by `outer` too.
pub fn covers(outer: &str, inner: &str) -> bool {
    let ((outer_name, outer), (inner_name, inner)) = (split(outer), split(inner));
    if outer_name != inner_name {
        return false;
    }
    let Some(outer) = outer else { return true };
    let Some(inner) = inner else { return false };
    let ((outer, outer_open), (inner, inner_open)) = (closed(&outer), closed(&inner));
    let n_words = outer.len();
    let is_as_long = match outer_open {
        true => inner.len() >= n_words,
        false => inner.len() == n_words && !inner_open,
    };
    // Words of patterns: `*` is a value, and `--name=*` begins as its values do.
    let fits =
        |(outer, inner): (&&str, &&str)| outer == inner || *inner != "*" && fits(outer, inner);
    is_as_long
        && outer.iter().zip(inner).all(fits)
        && inner[n_words..].iter().all(|more| is_value(more))
}

/// The narrower of two patterns of which one covers the other.
pub fn narrower<'a>(one: &'a str, other: &'a str) -> Option<&'a str> {
    if covers(one, other) {
        Some(other)
    } else if covers(other, one) {
        Some(one)
    } else {
        None
    }
}

/// What is wrong with a pattern, in a sentence.
pub fn problem(pattern: &str) -> Option<&'static str> {
    let (name, words) = split(pattern);
    let is_name = !name.is_empty() && !name.contains('/') && !name.starts_with(['-', '.', '*']);
    if !is_name {
        return Some("a program is a bare name such as `cargo`, with its arguments behind it");
    }
    let words = words.unwrap_or_default();
    if words.iter().any(|word| word.is_empty()) {
        return Some(
            "one space stands between the arguments of a program, and none behind the last",
        );
    }
    let (words, _) = closed(&words);
    let is_open = |word: &&str| word.contains('*') && *word != "*" && value_of(word).is_none();
    words
        .iter()
        .any(is_open)
        .then_some("`*` stands for a whole argument, for the value of `--name=*`, or, as `**` at the end, for all further arguments")
}

/// The name, and what the arguments may be; `None` for any.
fn split(pattern: &str) -> (&str, Option<Vec<&str>>) {
    match pattern.split_once(' ') {
        Some((name, words)) => (name, Some(words.split(' ').collect())),
        None => (pattern, None),
    }
}

/// The words without `**` at the end, and whether it was there.
fn closed<'a, 'w>(words: &'w [&'a str]) -> (&'w [&'a str], bool) {
    match words.split_last() {
        Some((&"**", rest)) => (rest, true),
        _ => (words, false),
    }
}

fn fits(word: &str, argument: &str) -> bool {
    if word == "*" {
        return is_value(argument);
    }
    match value_of(word) {
        Some(option) => argument.starts_with(option),
        None => word == argument,
    }
}

/// The begin of an option with any value: `--name=` of `--name=*`.
fn value_of(word: &str) -> Option<&str> {
    let option = word.strip_suffix('*')?;
    let is_option = option.ends_with('=') && option.starts_with('-') && !option.contains('*');
    is_option.then_some(option)
}

fn is_value(argument: &str) -> bool {
    !argument.is_empty() && !argument.starts_with(SWITCHES)
}

#[cfg(test)]
mod tests {
    use super::{allows, covers, narrower, problem};

    fn words(line: &str) -> (String, Vec<String>) {
        let mut words = line.split(' ').map(str::to_owned);
        (words.next().unwrap_or_default(), words.collect())
    }

    #[test]
    fn arguments_are_those_of_the_pattern_and_no_option_hides_in_a_value() {
        let table = [
            ("cargo", "cargo --config build.rustc-wrapper=x", true),
            ("cargo check --quiet", "cargo check --quiet", true),
            ("cargo check --quiet", "cargo check", false),
            (
                "cargo check --quiet",
                "cargo check --quiet --config x",
                false,
            ),
            (
                "cargo check --quiet",
                "cargo --config x check --quiet",
                false,
            ),
            ("cargo check --quiet", "cargo +nightly check --quiet", false),
            ("cargo check --quiet", "cargo check -Z x", false),
            ("cargo check --quiet", "Cargo check --quiet", false),
            ("cargo check --quiet", "cargo2 check --quiet", false),
            ("git log *", "git log main", true),
            ("git log *", "git log", false),
            ("git log *", "git log main other", false),
            ("git log *", "git log --output=x", false),
            ("git log *", "git log +x", false),
            ("git log *", "git log @x", false),
            ("git log **", "git log", true),
            ("git log **", "git log a b/../c ~", true),
            ("git log **", "git log a --output=x", false),
            ("git log **", "git show a", false),
            ("tool --max=* x", "tool --max=3 x", true),
            ("tool --max=* x", "tool --max x", false),
            ("tool --max=* x", "tool --min=3 x", false),
        ];
        for (pattern, line, expect) in table {
            let (program, arguments) = words(line);
            assert_eq!(
                allows(pattern, &program, &arguments),
                expect,
                "{pattern} | {line}"
            );
        }
        let empty = [String::new()];
        assert!(!allows(
            "git log *",
            "git",
            &[vec!["log".to_owned()], empty.to_vec()].concat()
        ));
    }

    #[test]
    fn a_pattern_covers_what_allows_no_more() {
        let table = [
            ("cargo", "cargo check", true),
            ("cargo", "cargo", true),
            ("cargo check", "cargo", false),
            ("cargo check", "cargo check", true),
            ("cargo check *", "cargo check a", true),
            ("cargo check *", "cargo check *", true),
            ("cargo check *", "cargo check **", false),
            ("cargo check *", "cargo check -a", false),
            ("cargo check **", "cargo check", true),
            ("cargo check **", "cargo check * a **", true),
            ("cargo check **", "cargo check -a **", false),
            ("cargo check a", "cargo check *", false),
            ("cargo --x=*", "cargo --x=1", true),
            ("cargo --x=*", "cargo --x=*", true),
            ("cargo --x=1", "cargo --x=*", false),
            ("git", "cargo", false),
        ];
        for (outer, inner, expect) in table {
            assert_eq!(covers(outer, inner), expect, "{outer} | {inner}");
        }
        assert_eq!(narrower("cargo", "cargo check"), Some("cargo check"));
        assert_eq!(narrower("cargo check", "cargo"), Some("cargo check"));
        assert_eq!(narrower("cargo check", "cargo clippy"), None);
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        for fine in [
            "cargo",
            "cargo check",
            "go vet -json ./...",
            "git log *",
            "a ** ",
            "x --y=*",
        ] {
            let fine = fine.trim();
            assert_eq!(problem(fine), None, "{fine}");
        }
        for bad in [
            "",
            " cargo",
            "/bin/sh",
            "./x",
            "-x",
            "*",
            "cargo  check",
            "cargo ",
            "cargo ch*",
            "cargo ** x",
            "cargo ***",
            "cargo x=*",
            "cargo --*=*",
        ] {
            assert!(problem(bad).is_some(), "{bad}");
        }
    }
}
