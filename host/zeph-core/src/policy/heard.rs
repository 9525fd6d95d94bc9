//! Addresses that nobody named. A model that was talked into it can carry out what it has read in a URL of its own making; one that stands in
//! what the user said, or in an earlier result, carries nothing new.

use std::collections::HashSet;

use url::Url;

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

/// The arguments that name an address, in every tool.
const URL_ARGUMENTS: [&str; 2] = ["url", "urls"];

/// What stands around an address in a text, and never in it.
const AROUND: [char; 9] = ['"', '\'', '<', '>', '`', '|', '\\', '{', '}'];

/// What may end an address, and may as well belong to the sentence around it.
const BEHIND: [char; 9] = ['.', ',', ';', ':', '!', '?', ')', ']', '*'];

/// The addresses in everything a session was told.
#[derive(Debug, Clone, Default)]
pub struct HeardUrls {
    /// Those that the user or a result named.
    named: HashSet<String>,
    /// Those that the model wrote before anybody else: a result that repeats one names nothing.
    written: HashSet<String>,
}

/// Where a text comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    User,
    Result,
    Model,
}

impl HeardUrls {
    /// Remembers every address in a result, with and without the punctuation behind it, but for those a call wrote first: an echo is no
    /// source.
    pub fn hear_result(&mut self, text: &str) {
        // What a model wrote beyond the limit is not known, so that results cannot be told from echoes.
        if self.written.len() < HEARD_MAX {
            self.hear(text, Source::Result);
        }
    }

    /// Remembers every address in what the user said. One without a scheme is one of `https`.
    pub fn hear_user(&mut self, text: &str) {
        self.hear(text, Source::User);
    }

    /// Remembers every address in the arguments of a call that nobody has named so far.
    pub fn hear_arguments(&mut self, arguments: &serde_json::Value) {
        match arguments {
            serde_json::Value::String(text) => self.hear(text, Source::Model),
            serde_json::Value::Array(items) => {
                items.iter().for_each(|item| self.hear_arguments(item));
            }
            serde_json::Value::Object(fields) => {
                fields.values().for_each(|item| self.hear_arguments(item));
            }
            _ => {}
        }
    }

    fn hear(&mut self, text: &str, source: Source) {
        let is_around = |letter: char| letter.is_whitespace() || AROUND.contains(&letter);
        let may_be_one =
            |word: &str| word.contains("://") || source == Source::User && word.contains('.');
        for word in text.split(is_around).filter(|word| may_be_one(word)) {
            // `[text](address)`, `(address)`, `key=address`
            let starts = word.match_indices(['(', '[', '=']).map(|(at, _)| at + 1);
            for at in std::iter::once(0).chain(starts).take(8) {
                self.hear_word(&word[at..], source);
            }
        }
    }

    fn hear_word(&mut self, word: &str, source: Source) {
        let mut word = word;
        for _ in 0..=BEHIND_MAX {
            if let Some(address) = plain(word) {
                self.add(address, source);
            }
            match word.strip_suffix(BEHIND) {
                Some(shorter) => word = shorter,
                None => return,
            }
        }
    }

    fn add(&mut self, address: String, source: Source) {
        let (set, is_other) = match source {
            Source::User => (&mut self.named, true),
            Source::Result => (&mut self.named, !self.written.contains(&address)),
            Source::Model => (&mut self.written, !self.named.contains(&address)),
        };
        if is_other && set.len() < HEARD_MAX {
            set.insert(address);
        }
    }

    /// Whether an address was named.
    pub fn knows(&self, address: &str) -> bool {
        plain(address).is_some_and(|address| self.named.contains(&address))
    }
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
        assert!(heard.written.len() <= super::HEARD_MAX);
    }

    #[test]
    fn no_text_makes_it_grow_without_end() {
        let mut heard = HeardUrls::default();
        heard.hear_result(&format!("https://a.example/{}", ".".repeat(100_000)));
        heard.hear_user(&"([=".repeat(100_000));
        for n in 0..30_000 {
            heard.hear_result(&format!("https://{n}.example/"));
        }
        assert!(heard.named.len() <= super::HEARD_MAX);
    }
}
