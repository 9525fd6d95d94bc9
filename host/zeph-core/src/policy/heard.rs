//! Addresses that nobody named. A model that was talked into it can carry out what it has read in a URL of its own making; one that stands in
//! what the user said, or in an earlier result, carries nothing new.

mod written;

use std::collections::{BTreeSet, HashSet};

use url::Url;

use self::written::Written;
use super::{Finding, SessionFacts, Verdict};
use crate::call::ResolvedCall;
use crate::failure::one_line;
use crate::tool::Backend;

/// Most letters that are taken off the end of an address.
const BEHIND_MAX: usize = 4;

/// Most addresses that are remembered of a session. Beyond them new ones are not, so that they ask.
const HEARD_MAX: usize = 20_000;

/// Most bytes of an address that is remembered.
const URL_BYTES_MAX: usize = 2_048;

/// What separates the scheme of an address from the rest.
const SCHEME_END: &str = "://";

/// The arguments that name an address, in every tool.
const URL_ARGUMENTS: [&str; 2] = ["url", "urls"];

/// What stands around an address in a text, and never in it. An ellipsis stands where the rest of one was cut off.
const AROUND: [char; 10] = ['"', '\'', '<', '>', '`', '|', '\\', '{', '}', '…'];

/// What may end an address, and may as well belong to the sentence around it.
const BEHIND: [char; 9] = ['.', ',', ';', ':', '!', '?', ')', ']', '*'];

/// The addresses in everything a session was told.
#[derive(Debug, Clone, Default)]
pub struct HeardUrls {
    /// Those that the user or a result named.
    named: HashSet<String>,
    /// What calls wrote.
    written: Written,
}

/// Who says a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    User,
    Result,
}

impl HeardUrls {
    /// Remembers every address in a result, with and without the punctuation behind it, but for those a call wrote first: an echo is no
    /// source.
    pub fn hear_result(&mut self, text: &str) {
        // What a model wrote beyond the limit is not known, so that results cannot be told from echoes.
        if self.written.is_full() {
            return;
        }
        let mut heard = Vec::new();
        // What is added behind an echo, such as the end of a sentence, makes it no source either.
        let is_echo = |text: &str| self.written.has(text.trim_end_matches(BEHIND));
        each_address(text, Source::Result, |address, word| {
            if !is_echo(&address) && !is_echo(behind_scheme(word)) {
                heard.push(address);
            }
        });
        self.name(heard);
    }

    /// Remembers every address in what the user said. One without a scheme is one of `https`.
    pub fn hear_user(&mut self, text: &str) {
        let mut heard = Vec::new();
        each_address(text, Source::User, |address, _| heard.push(address));
        self.name(heard);
    }

    /// Remembers addresses that were named elsewhere, as [`Self::named_in`] gives them.
    pub fn hear_named(&mut self, addresses: &[String]) {
        self.name(addresses.iter().filter_map(|address| plain(address)));
    }

    /// Remembers what could become an address in the arguments of a call, unless it is one that was named before.
    pub fn hear_arguments(&mut self, arguments: &serde_json::Value) {
        each_text(arguments, &mut |text| self.hear_model(text));
    }

    /// Remembers what could become an address in a text of a model.
    ///
    /// Limits: nothing is read of a text once there is no room for more.
    pub fn hear_model(&mut self, text: &str) {
        for word in text.split_whitespace() {
            if self.written.is_full() {
                return;
            }
            let schemes = word.match_indices(SCHEME_END).take(HEARD_MAX + 1);
            let places = schemes.map(|(at, scheme_end)| at + scheme_end.len());
            let places: Vec<usize> = places.filter(|at| !self.is_named(&word[*at..])).collect();
            for place in self.written.add(word, &places) {
                self.hear_normalised(&word[place..]);
            }
        }
    }

    /// Remembers `rest`, what stands behind a scheme, as a program may write it that reads it as an address.
    fn hear_normalised(&mut self, rest: &str) {
        let rest = &rest[..rest.floor_char_boundary(URL_BYTES_MAX)];
        // The name of a host ends there, whatever the word goes on with.
        let host_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let host = &rest[..host_end];
        let rest = host.find(AROUND).map_or(rest, |end| &rest[..end]);
        let address = plain(&format!("https://{rest}"));
        if let Some(address) = address.filter(|address| !Written::is_same(address, rest)) {
            drop(self.written.add(&address, &[0]));
        }
    }

    /// Whether `rest`, what stands behind a scheme, is an address that was named, but for what stands around it.
    fn is_named(&self, rest: &str) -> bool {
        let rest = &rest[..rest.floor_char_boundary(URL_BYTES_MAX)];
        let bare = rest.trim_end_matches(BEHIND).trim_end_matches(AROUND);
        let bare = bare.trim_end_matches(BEHIND);
        // Most of a long word is no address.
        bare.len() < URL_BYTES_MAX
            && !bare.contains(AROUND)
            && plain(&format!("https://{bare}"))
                .is_some_and(|address| self.named.contains(&address))
    }

    /// The addresses in `value` that were named.
    pub fn named_in(&self, value: &serde_json::Value) -> Vec<String> {
        let mut found = BTreeSet::new();
        each_text(value, &mut |text| {
            each_address(text, Source::User, |address, _| {
                if self.named.contains(&address) {
                    found.insert(format!("https://{address}"));
                }
            });
        });
        found.into_iter().collect()
    }

    fn name(&mut self, addresses: impl IntoIterator<Item = String>) {
        for address in addresses {
            if self.named.len() < HEARD_MAX {
                self.named.insert(address);
            }
        }
    }

    /// Whether an address was named.
    pub fn knows(&self, address: &str) -> bool {
        plain(address).is_some_and(|address| self.named.contains(&address))
    }
}

/// Hands every text in `value` on, keys as well.
fn each_text(value: &serde_json::Value, take: &mut dyn FnMut(&str)) {
    match value {
        serde_json::Value::String(text) => take(text),
        serde_json::Value::Array(items) => items.iter().for_each(|item| each_text(item, take)),
        serde_json::Value::Object(fields) => {
            for (key, item) in fields {
                take(key);
                each_text(item, take);
            }
        }
        _ => {}
    }
}

/// Hands every address in `text` on, with the word it was read from.
fn each_address(text: &str, source: Source, mut take: impl FnMut(String, &str)) {
    let is_around = |letter: char| letter.is_whitespace() || AROUND.contains(&letter);
    // Only people leave the scheme out.
    let may_be_one =
        |word: &str| word.contains(SCHEME_END) || source == Source::User && word.contains('.');
    for word in text.split(is_around).filter(|word| may_be_one(word)) {
        // `[text](address)`, `(address)`, `key=address`
        let starts = word.match_indices(['(', '[', '=']).map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(starts).take(8);
        for word in starts.map(|at| &word[at..]).filter(|word| may_be_one(word)) {
            each_reading(word, &mut take);
        }
    }
}

/// Hands the address in `word` on, with and without the punctuation behind it.
fn each_reading(word: &str, take: &mut impl FnMut(String, &str)) {
    let mut word = word;
    for _ in 0..=BEHIND_MAX {
        if let Some(address) = plain(word) {
            take(address, word);
        }
        match word.strip_suffix(BEHIND) {
            Some(shorter) => word = shorter,
            None => return,
        }
    }
}

/// What stands behind the scheme in `word`.
fn behind_scheme(word: &str) -> &str {
    word.split_once(SCHEME_END).map_or(word, |(_, rest)| rest)
}

/// An address as it is compared: as a browser would write it, over TLS, without a fragment.
fn plain(text: &str) -> Option<String> {
    if text.len() > URL_BYTES_MAX {
        return None;
    }
    let mut url = match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => url,
        _ if text.contains("://") => return None,
        _ => Url::parse(&format!("https://{text}")).ok()?,
    };
    url.set_fragment(None);
    let address = url.as_str();
    Some(address.split_once("://")?.1.to_owned())
}

/// Asks where a tool of a plugin or of a server is given an address that nobody named. A session whose user is not heard passes.
pub(super) fn check(facts: &SessionFacts<'_>, call: &ResolvedCall) -> Finding {
    let is_guest = matches!(call.tool.backend, Backend::Wasm(_) | Backend::Mcp(_));
    let Some(heard) = facts.heard.filter(|_| is_guest) else {
        return Finding::pass("no address to compare");
    };
    let unheard = URL_ARGUMENTS
        .iter()
        .filter_map(|name| call.arguments.values.get(*name))
        .flat_map(|value| match value {
            serde_json::Value::Array(items) => items.iter().collect(),
            one => vec![one],
        })
        .filter_map(serde_json::Value::as_str)
        .find(|address| !heard.knows(address));
    let Some(address) = unheard else {
        return Finding::pass("every address was named before");
    };
    let shown = one_line(address, 200);
    let reason = format!(
        "`{shown}` stands neither in what the user said nor in an earlier result, and an address can carry data out"
    );
    Finding::new(Verdict::Ask, "addresses: what nobody named asks").because(reason)
}

#[cfg(test)]
mod tests {
    use super::HeardUrls;

    #[test]
    fn addresses_are_found_in_texts() {
        let mut heard = HeardUrls::default();
        heard.hear_user("Read https://localhost:8443/a, please.");
        heard.hear_user(
            "Read https://example.org/a?b=c, then [this](https://example.org/d_(e)). See docs.example.org/x; \
             <a href=\"https://EXAMPLE.com/%7Eme#top\">me</a> url=http://example.net:8080/",
        );
        for known in [
            "https://example.org/a?b=c",
            "https://example.org/a?b=c#there",
            "https://example.org/d_(e)",
            "https://docs.example.org/x",
            "https://example.com/%7Eme",
            "http://example.net:8080",
            "https://localhost:8443/a",
        ] {
            assert!(heard.knows(known), "{known} {heard:?}");
        }
        for unknown in [
            "https://example.org/",
            "https://example.org/a?b=secret",
            "https://example.org/a",
            "https://example.net/",
            "https://secret.example.org/a?b=c",
            "",
        ] {
            assert!(!heard.knows(unknown), "{unknown}");
        }
    }

    #[test]
    fn an_echo_of_what_a_model_wrote_names_nothing() {
        let mut heard = HeardUrls::default();
        heard.hear_user("Read https://example.org/a.");
        heard.hear_result("see https://example.org/b");
        heard.hear_arguments(&serde_json::json!({
            "command": "echo https://example.org/?secret https://example.org/b",
            "list": [{"deep": "<https://example.org/deep>"}],
        }));
        heard.hear_result(
            "https://example.org/?secret https://example.org/deep https://example.org/c",
        );
        for (address, is_known) in [
            ("https://example.org/a", true),
            ("https://example.org/b", true),
            ("https://example.org/c", true),
            ("https://example.org/?secret", false),
            ("https://example.org/deep", false),
        ] {
            assert_eq!(heard.knows(address), is_known, "{address}");
        }
        // The user can always name it.
        heard.hear_user("then https://example.org/?secret");
        assert!(heard.knows("https://example.org/?secret"));
        let many = (0..30_000).map(|n| format!("https://{n}.example/"));
        heard.hear_arguments(&many.collect::<Vec<_>>().into());
        heard.hear_result("https://example.org/later");
        assert!(!heard.knows("https://example.org/later"));
        assert!(heard.written.n_texts() <= super::HEARD_MAX);
        assert!(heard.written.n_bytes() <= super::written::WRITTEN_BYTES_MAX);
    }

    #[test]
    fn an_echo_names_nothing_wherever_it_begins_and_ends() {
        let mut heard = HeardUrls::default();
        heard.hear_user("Read https://example.org/a/b.");
        heard.hear_arguments(&serde_json::json!({
            "pattern": "xhttp://example.org/?d=SECRET a://x/?b=example.org/?e=SECRET HTTP://EXAMPLE.org?f=SECRET http://example.org/{SECRET}",
            "url": "https://example.org/a/b",
            "command": "curl 'https://example.org/a/b'.",
        }));
        heard.hear_result(
            "[\"http://example.org/?d=SECRET\"] http://example.org/?d=SECR a://x/?b=example.org/?e=SECRET HTTP://EXAMPLE.org?f=SECRET \
             http://example.org/?f=SECRET http://example.org/%7BSECRET%7D https://example.org/a/ https://example.org/c",
        );
        for (address, is_known) in [
            ("http://example.org/?d=SECRET", false),
            ("http://example.org/?d=SECR", false),
            ("https://example.org/?e=SECRET", false),
            ("http://example.org/?f=SECRET", false),
            ("http://example.org/%7BSECRET%7D", false),
            // What was named before it was written is no news.
            ("https://example.org/a/b", true),
            ("https://example.org/a/", true),
            ("https://example.org/c", true),
        ] {
            assert_eq!(heard.knows(address), is_known, "{address}");
        }
    }

    #[test]
    fn an_echo_of_a_key_names_nothing_however_it_is_quoted() {
        let mut heard = HeardUrls::default();
        let written = "https://example.org/?d=SECRET4-and-much-more";
        heard.hear_arguments(&serde_json::json!({
            "path": "a",
            "https://example.org/?d=SECRET4-and-much-more": {"https://example.org/\u{e0041}?e=SECRET4": 1},
        }));
        for echo in [
            format!("ignored the unknown argument `{written}`"),
            format!("No lines match: {written}."),
            "`https://example.org/?d=SECRET4-and…`".to_owned(),
            "https://example.org/?d=SECRET4-and...".to_owned(),
            "https://example.org/?%64=SECRET4-%61nd".to_owned(),
            "https://example.org/?e=SECRET4".to_owned(),
        ] {
            heard.hear_result(&echo);
            assert!(heard.named.is_empty(), "{echo}: {:?}", heard.named);
        }
        heard.hear_result("see https://example.org/docs…");
        assert!(heard.knows("https://example.org/docs"));
    }

    /// A file of minified JSON.
    #[test]
    fn a_long_word_of_addresses_leaves_room_for_others() {
        let quotes = ["\"", "\\\""];
        for (quote, path) in quotes
            .into_iter()
            .flat_map(|quote| [(quote, ""), (quote, "/p/q")])
        {
            let mut heard = HeardUrls::default();
            let links = (0..2_300).map(|n| format!("{quote}https://{n}.example{path}{quote}"));
            let word = format!("[{}]", links.collect::<Vec<_>>().join(","));
            for _ in 0..3 {
                heard.hear_model(&word);
            }
            assert!(heard.written.n_bytes() < 3 * word.len(), "{quote}{path}");
            heard.hear_result("https://77.example/p/q https://example.org/later");
            assert!(heard.knows("https://example.org/later"), "{quote}{path}");
            assert_eq!(heard.knows("https://77.example/p/q"), path.is_empty());
        }
    }

    #[test]
    fn what_was_named_can_be_named_elsewhere() {
        let mut heard = HeardUrls::default();
        heard.hear_user("Read https://example.org/a.");
        let task = serde_json::json!({"url": "https://example.org/a", "other": "https://example.org/?secret"});
        let named = heard.named_in(&task);
        assert_eq!(named, ["https://example.org/a"]);
        let mut later = HeardUrls::default();
        later.hear_named(&named);
        assert!(later.knows("http://example.org/a"));
        assert!(!later.knows("https://example.org/?secret"));
    }

    #[test]
    fn no_text_makes_it_grow_without_end() {
        let mut heard = HeardUrls::default();
        heard.hear_result(&format!("https://a.example/{}", ".".repeat(100_000)));
        heard.hear_user(&"([=".repeat(100_000));
        heard.hear_model(&"a://".repeat(100_000));
        for n in 0..30_000 {
            heard.hear_result(&format!("https://{n}.example/"));
        }
        assert!(heard.named.len() <= super::HEARD_MAX);
    }
}
