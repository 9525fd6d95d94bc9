//! The hosts that a command names, and whether all of them are this machine.
//!
//! A word that may name a host counts as one unless it is known to be something else: one name of this machine among the words must not
//! hide another host.

use crate::command::{Becomes, Hole};
use crate::policy::guard::{host_of, is_loopback};

/// Options of `curl` and `wget` whose values are no hosts: letters, and whole names.
const CURL_LETTERS: &str = "dFHouAXbcwmTe";
const CURL_NAMES: &str = "\
    --data --data-raw --data-binary --data-ascii --data-urlencode --json --form --form-string --header --output --user --user-agent --request \
    --cookie --cookie-jar --write-out --max-time --connect-timeout --retry --upload-file --referer";
const WGET_LETTERS: &str = "OoUP";
const WGET_NAMES: &str =
    "--post-data --post-file --body-data --body-file --header --output-document --user-agent";

/// Options by which what is asked goes elsewhere than the address says.
const REROUTES: [&str; 9] = [
    "--proxy",
    "--preproxy",
    "--socks",
    "--connect-to",
    "--resolve",
    "--config",
    "--execute",
    "--doh",
    "--haproxy",
];

/// Short options of `curl` and `wget` of the same kind.
const REROUTE_LETTERS: [(&str, &[char]); 2] = [("curl", &['x', 'K']), ("wget", &['e'])];

/// Largest number that is a port rather than an address.
const PORT_MAX: u64 = 65_535;

/// The host of `host:path`, `user@host` and addresses with a scheme.
pub(in crate::policy::flow) fn remote<'a>(word: &&'a str) -> Option<&'a str> {
    if word.starts_with('-') || word.contains(char::is_whitespace) {
        return None;
    }
    if let Some((_, rest)) = word.split_once("://") {
        return Some(host_of(rest));
    }
    let (before, _) = word.split_once([':', '@'])?;
    (!before.contains('/') && !before.is_empty()).then(|| host_of(word))
}

/// Whether every host among the words is this machine, and there is one. What is made while the line runs may name any.
pub(super) fn is_local(name: &str, words: &[&str], holes: &[Hole]) -> bool {
    if words.iter().any(|word| reroutes(name, word)) {
        return false;
    }
    let before = |at: usize| at.checked_sub(1).and_then(|at| words.get(at));
    let is_value = |at: usize| before(at).is_some_and(|option| takes_value(name, option));
    let is_open = |hole: &Hole| {
        let word = words.get(hole.argument).copied().unwrap_or_default();
        let known = word.get(..hole.start).unwrap_or_default();
        let has_host = known
            .split_once("://")
            .is_some_and(|(_, rest)| rest.contains('/'));
        hole.becomes != Becomes::Text || !(has_host || is_value(hole.argument))
    };
    if holes.iter().any(is_open) {
        return false;
    }
    let named = words.iter().enumerate();
    let named = named.filter(|(at, word)| !word.starts_with('-') && !is_value(*at));
    let mut hosts = named
        .filter_map(|(_, word)| match name {
            // Everything else that they name is a file.
            "scp" | "rsync" => remote(word),
            _ => host(word),
        })
        .peekable();
    hosts.peek().is_some() && hosts.all(is_loopback)
}

/// Whether an address with a scheme names another machine.
pub(super) fn names_other(words: &[String]) -> bool {
    let addresses = words.iter().map(String::as_str);
    let addresses: Vec<&str> = addresses.filter(|word| word.contains("://")).collect();
    let mut hosts = addresses.iter().filter_map(remote);
    hosts.any(|host| !host.is_empty() && !is_loopback(host))
}

fn reroutes(name: &str, word: &str) -> bool {
    let of_program = REROUTE_LETTERS.iter().find(|(other, _)| *other == name);
    let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let is_letter = of_program
        .zip(letters)
        .is_some_and(|((_, rerouting), letters)| letters.contains(*rerouting));
    is_letter || REROUTES.iter().any(|option| word.starts_with(option))
}

/// Whether the word after this option is its value, and no host.
fn takes_value(name: &str, option: &str) -> bool {
    let (letters, names) = match name {
        "curl" => (CURL_LETTERS, CURL_NAMES),
        "wget" => (WGET_LETTERS, WGET_NAMES),
        _ => return false,
    };
    match option.strip_prefix('-') {
        Some(rest) if rest.starts_with('-') => super::has(names, option),
        // The value of an earlier letter may stand in the same word: only a word of flags ends with one that takes the next.
        Some(rest) => {
            let is_flag = |letter: char| letter.is_ascii_alphabetic() && !letters.contains(letter);
            let mut flags = rest.chars();
            let last = flags.next_back();
            last.is_some_and(|letter| letters.contains(letter)) && flags.all(is_flag)
        }
        None => false,
    }
}

/// The host that a word may name.
fn host<'a>(word: &&'a str) -> Option<&'a str> {
    if let Some((_, rest)) = word.split_once("://") {
        return Some(host_of(rest));
    }
    let before = word.split('/').next().unwrap_or_default();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._:@[]%".contains(letter);
    if before.is_empty() || !before.chars().all(is_plain) {
        return None;
    }
    let is_number = |text: &str| match text.parse::<u64>() {
        Ok(number) => number > PORT_MAX,
        Err(_) => text.starts_with("0x"),
    };
    let may_be_one =
        before.contains(['.', ':', '@']) || is_loopback(host_of(word)) || is_number(before);
    may_be_one.then(|| host_of(word))
}
