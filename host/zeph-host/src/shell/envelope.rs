//! The envelope of a command: its two streams, bounded like the text that a model is shown.
//!
//! The whole output is behind the reference in the text; carrying it a second time would only cost memory.

use serde_json::Value;
use zeph_core::output::cut;

/// Cuts `stdout` and `stderr` of `envelope` to `chars_max` characters each and sets `truncated` when one was cut.
pub(super) fn bound(envelope: &mut Value, chars_max: usize) {
    let mut is_cut = false;
    for stream in ["stdout", "stderr"] {
        let Some(Value::String(text)) = envelope.get_mut(stream) else {
            continue;
        };
        if let Some(cut) = cut(text, chars_max) {
            let left_out = cut.n_chars_left_out;
            *text = format!(
                "{}\n[… {left_out} characters omitted …]\n{}",
                cut.head, cut.tail
            );
            is_cut = true;
        }
    }
    if is_cut {
        envelope["truncated"] = Value::Bool(true);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::bound;

    #[test]
    fn long_streams_are_cut_and_said_to_be() {
        let long = "line\n".repeat(100);
        let mut envelope =
            json!({"stdout": long, "stderr": "e", "exit_code": 0, "truncated": false});
        bound(&mut envelope, 60);
        assert_eq!(envelope["truncated"], true);
        assert_eq!(envelope["stderr"], "e");
        let stdout = envelope["stdout"].as_str().unwrap();
        assert!(stdout.chars().count() < 110, "{stdout}");
        assert!(stdout.contains("characters omitted"), "{stdout}");

        let mut short = json!({"stdout": "a", "stderr": "", "exit_code": 0, "truncated": false});
        let before = short.clone();
        bound(&mut short, 60);
        assert_eq!(short, before);
    }
}
