//! `zeph-host plugin`, verb by verb, through the program.

mod add;
mod approve;
mod ask;
mod check;
mod foreign;
mod grant;
mod look;
mod new;
mod published;
mod registry;
mod remove;
mod signatures;
mod sigstore;
mod sync;
mod update;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::guest::HOSTILE;
use crate::product::{Product, Ran};

/// Wants to read the directories of the host, and other things that no test here uses up.
pub(super) const WANTS: &str = r#"
[[directory]]
path = "."
rights = ["read"]
reason = "It reads what it is told to."

[[host]]
name = "api.example.com"
reason = "It asks for the weather."

[[limit]]
name = "wall_clock_secs"
value = 60
reason = "It takes its time."
"#;

/// The same and more.
pub(super) const WANTS_MORE: &str = r#"
[[directory]]
path = "."
rights = ["read", "write"]
reason = "It reads and writes what it is told to."

[[host]]
name = "api.example.com"
reason = "It asks for the weather."

[[variable]]
name = "LANG"
reason = "It speaks your language."
"#;

/// The hostile plugin with this manifest: its tools are `echo`, `files` and others.
pub(crate) fn wanting(manifest: &str) -> Vec<u8> {
    with_section(HOSTILE, "zeph:manifest", manifest.as_bytes())
}

/// A custom section behind everything else.
pub(super) fn with_section(component: &[u8], name: &str, content: &[u8]) -> Vec<u8> {
    let mut body = leb128(name.len());
    body.extend(name.as_bytes());
    body.extend(content);
    let mut component = component.to_vec();
    component.push(0);
    component.extend(leb128(body.len()));
    component.extend(body);
    component
}

fn leb128(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = u8::try_from(number & 127).unwrap();
        number >>= 7;
        if number == 0 {
            bytes.push(byte);
            return bytes;
        }
        bytes.push(byte | 128);
    }
}

impl Product {
    /// The data directory's folder of plugins.
    pub(super) fn plugins(&self) -> PathBuf {
        self.home.join(".local/share/zeph-host/plugins")
    }

    /// Puts a file there, as a person does who drops it.
    pub(crate) fn drop_in(&self, name: &str, bytes: &[u8]) -> &Self {
        fs::create_dir_all(self.plugins()).unwrap();
        let temporary = self.home.join("dropping");
        fs::write(&temporary, bytes).unwrap();
        fs::rename(temporary, self.plugins().join(format!("{name}.wasm"))).unwrap();
        self
    }

    /// `zeph-host plugin` with these words.
    pub(super) fn plugin(&self, words: &[&str]) -> Ran {
        let mut all = vec!["plugin"];
        all.extend(words);
        self.run(&all)
    }

    /// The same with `--json`, which must succeed.
    pub(crate) fn plugin_json(&self, words: &[&str]) -> Value {
        let mut all = words.to_vec();
        all.push("--json");
        let ran = self.plugin(&all);
        assert_eq!(ran.code, Some(0), "{words:?}: {}", ran.stderr);
        ran.json()
    }

    /// Must end with `code` and say all `words`, on either stream.
    pub(crate) fn refuses(&self, typed: &[&str], code: i32, words: &[&str]) {
        let ran = self.plugin(typed);
        let said = format!("{}\n{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, Some(code), "{typed:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{typed:?}: no {word:?} in {said}");
        }
    }
}

impl Ran {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
