//! The arguments of a call, as the judge is shown them: without secrets, bounded, and unable to end the line they stand in.

use serde_json::{Map, Value};
use zeph_core::redact::Redactor;
use zeph_core::text::is_deceptive;

/// Characters of a text that the judge sees whole; of a longer one it sees the beginning and the end.
const TEXT_CHARS_MAX: usize = 4_000;

/// Characters of a command: a part that is not shown could be anything, so a longer one is not judged at all.
const COMMAND_CHARS_MAX: usize = 16_000;

/// Bytes of all arguments together.
const BYTES_MAX: usize = 48_000;

/// The argument that is a command, in every tool.
const COMMAND: &str = "command";

/// Parts of names whose values are secrets.
const SECRET_NAMES: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "private_key",
    "credential",
    "authorization",
];

/// The arguments, without secrets.
///
/// Errors: in words, when too little of them could be shown.
pub(super) fn shown(arguments: &Value, redactor: &Redactor) -> Result<Value, String> {
    let command = arguments.get(COMMAND).and_then(Value::as_str);
    if command.is_some_and(|command| command.chars().count() > COMMAND_CHARS_MAX) {
        return Err(format!(
            "the command is longer than the {COMMAND_CHARS_MAX} characters that are judged"
        ));
    }
    let mut clean = arguments.clone();
    redactor.clean_json(&mut clean);
    let shown = value("", clean);
    match shown.to_string().len() > BYTES_MAX {
        true => Err(format!(
            "the arguments are longer than the {BYTES_MAX} bytes that are judged"
        )),
        false => Ok(shown),
    }
}

fn value(name: &str, given: Value) -> Value {
    match given {
        Value::String(text) if is_secret(name) => {
            format!("[REDACTED:{} chars]", text.chars().count()).into()
        }
        Value::String(text) if name == COMMAND => text.into(),
        Value::String(text) => shortened(text).into(),
        Value::Array(items) => items.into_iter().map(|item| value(name, item)).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, field)| {
                let field = value(&key, field);
                (shortened(key), field)
            });
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other,
    }
}

/// Whether a value of this name is a secret: by what it contains, or by a word of it.
fn is_secret(name: &str) -> bool {
    let lower = name.to_lowercase().replace('-', "_");
    let has_word = || {
        lower
            .split(|letter: char| !letter.is_alphanumeric())
            .any(|word| word == "auth")
    };
    SECRET_NAMES.iter().any(|part| lower.contains(part)) || has_word()
}

fn shortened(text: String) -> String {
    let n_chars = text.chars().count();
    if n_chars <= TEXT_CHARS_MAX {
        return text;
    }
    let half = TEXT_CHARS_MAX / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(n_chars - half).collect();
    format!(
        "{head}[… {} characters are not shown …]{tail}",
        n_chars - 2 * half
    )
}

/// JSON on one line, in which no character can end a line or a block, hide, or reorder what stands there.
pub(super) fn inert(value: &Value) -> String {
    let mut text = String::new();
    for letter in value.to_string().chars() {
        let is_plain = !is_deceptive(letter) && !matches!(letter, '<' | '>' | '`');
        match is_plain {
            true => text.push(letter),
            // Outside of strings JSON has none of these.
            false => {
                let mut units = [0; 2];
                let units = letter.encode_utf16(&mut units).iter();
                units.for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
            }
        }
    }
    text
}
