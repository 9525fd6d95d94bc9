//! A call as an editor shows it. Pure.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};
use zeph_acp::content::ContentBlock;
use zeph_acp::update::{
    ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolKind,
};
use zeph_agent::message::{Arguments, Image, ToolCall};
use zeph_agent::tool_host::{CallEnd, CallEndKind};
use zeph_core::output::{FileLocation, ToolOutput};
use zeph_core::redact::Redactor;

use crate::agent::card;

/// Arguments that name paths.
const PATHS: [&str; 3] = ["path", "source", "destination"];

/// Bytes of one side of a diff that is shown.
const DIFF_BYTES_MAX: usize = 256 * 1024;

/// What is known of a call that has ended, besides what the model is shown.
#[derive(Debug, Clone, Default)]
pub(super) struct CallFacts {
    /// The structured part of its result.
    pub(super) structured: Option<Value>,
    /// The files it read or changed.
    pub(super) locations: Vec<FileLocation>,
}

impl CallFacts {
    pub(super) fn of(output: &ToolOutput) -> Self {
        Self {
            structured: output.structured.clone(),
            locations: output.locations.clone(),
        }
    }
}

/// What a call works with, as far as showing it goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallView<'a> {
    pub(super) call: &'a ToolCall,
    /// Where relative paths start.
    pub(super) directory: &'a Path,
    /// What no client is shown.
    pub(super) redactor: &'a Redactor,
}

impl CallView<'_> {
    /// The call that begins.
    pub(super) fn begin(&self, id: &str) -> ToolCallUpdate {
        let content = self.announced_diff();
        let locations = self.announced_locations();
        ToolCallUpdate {
            status: Some(ToolCallStatus::InProgress),
            content: (!content.is_empty()).then_some(content),
            locations: (!locations.is_empty()).then_some(locations),
            ..self.described(id)
        }
    }

    /// What it is: title, name, kind, arguments.
    pub(super) fn described(&self, id: &str) -> ToolCallUpdate {
        let title = card::title(self.call);
        let title = title.strip_prefix("▸ ").unwrap_or(&title);
        ToolCallUpdate {
            tool_call_id: id.to_owned(),
            title: Some(self.redactor.text(title).into_owned()),
            name: Some(self.call.name.clone()),
            kind: Some(kind(&self.call.name)),
            raw_input: Some(self.raw_input()),
            ..ToolCallUpdate::default()
        }
    }

    /// The call that has ended. `before` stands before its text: the terminal it ran in.
    pub(super) fn end(
        &self,
        id: &str,
        (end, facts): (&CallEnd, &CallFacts),
        before: Option<ToolCallContent>,
    ) -> ToolCallUpdate {
        let mut content: Vec<ToolCallContent> = before.into_iter().collect();
        if end.kind == CallEndKind::Done {
            content.extend(self.diff(facts));
        }
        content.push(ToolCallContent::text(&*end.text));
        content.extend(end.images.iter().map(image));
        let locations = facts.locations.iter().map(|place| self.location(place));
        let locations: Vec<_> = locations.collect();
        ToolCallUpdate {
            tool_call_id: id.to_owned(),
            status: Some(status(end.kind)),
            content: Some(content),
            locations: (!locations.is_empty()).then_some(locations),
            raw_output: facts.structured.clone(),
            ..ToolCallUpdate::default()
        }
    }

    fn arguments(&self) -> Option<&Map<String, Value>> {
        match &self.call.arguments {
            Arguments::Object(arguments) => Some(arguments),
            Arguments::Malformed { .. } => None,
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.arguments()?.get(name)?.as_str()
    }

    fn raw_input(&self) -> Value {
        let mut value = match &self.call.arguments {
            Arguments::Object(arguments) => Value::Object(arguments.clone()),
            Arguments::Malformed { text, .. } => Value::String(text.clone()),
        };
        self.redactor.clean_json(&mut value);
        value
    }

    fn path(&self, path: &str) -> String {
        let path = plain(&self.directory.join(path));
        path.to_string_lossy().into_owned()
    }

    fn announced_locations(&self) -> Vec<ToolCallLocation> {
        let line = match kind(&self.call.name) {
            ToolKind::Read => self.arguments().and_then(|given| given.get("offset")),
            _ => None,
        };
        let line = line
            .and_then(Value::as_u64)
            .and_then(|skipped| u32::try_from(skipped + 1).ok());
        let paths = PATHS.iter().filter_map(|name| self.text(name));
        let locations = paths.map(|path| ToolCallLocation {
            path: self.path(path),
            line,
        });
        locations.collect()
    }

    fn location(&self, place: &FileLocation) -> ToolCallLocation {
        ToolCallLocation {
            path: self.path(&place.path),
            line: place.line,
        }
    }

    /// What a call of a tool that writes files wants to change.
    fn announced_diff(&self) -> Vec<ToolCallContent> {
        let Some(path) = self
            .text("path")
            .filter(|_| kind(&self.call.name) == ToolKind::Edit)
        else {
            return Vec::new();
        };
        let (old, new) = match (self.text("old_string"), self.text("new_string")) {
            (Some(old), Some(new)) => (Some(old), new),
            _ => match self.text("content") {
                Some(content) => (None, content),
                None => return Vec::new(),
            },
        };
        self.fragment(path, old, new).into_iter().collect()
    }

    fn fragment(&self, path: &str, old: Option<&str>, new: &str) -> Option<ToolCallContent> {
        let is_short = old.map_or(0, str::len).max(new.len()) <= DIFF_BYTES_MAX;
        is_short.then(|| ToolCallContent::Diff {
            path: self.path(path),
            old_text: old.map(|old| self.redactor.text(old).into_owned()),
            new_text: self.redactor.text(new).into_owned(),
        })
    }

    /// What a call of a tool that writes files has changed: each hunk of its diff, or what was announced where there is none.
    fn diff(&self, facts: &CallFacts) -> Vec<ToolCallContent> {
        let Some(path) = self
            .text("path")
            .filter(|_| kind(&self.call.name) == ToolKind::Edit)
        else {
            return Vec::new();
        };
        let unified = facts
            .structured
            .as_ref()
            .and_then(|value| value.get("diff"));
        match unified.and_then(Value::as_str) {
            Some(unified) => hunks(unified)
                .iter()
                .filter_map(|(old, new)| self.fragment(path, Some(old), new))
                .collect(),
            None => self.announced_diff(),
        }
    }
}

/// What a tool does, by its name; a tool of the host's own plugins may be called by its full name.
pub(super) fn kind(tool: &str) -> ToolKind {
    let bare = ["file__", "scrape__"]
        .iter()
        .find_map(|plugin| tool.strip_prefix(plugin))
        .unwrap_or(tool);
    match bare {
        "bash" | "shell" => ToolKind::Execute,
        "read" => ToolKind::Read,
        "write" | "edit" => ToolKind::Edit,
        "search" | "grep" | "find" | "find_path" | "list_directory" => ToolKind::Search,
        "web_scrape" | "fetch" => ToolKind::Fetch,
        "delete_path" => ToolKind::Delete,
        "move_path" => ToolKind::Move,
        _ => ToolKind::Other,
    }
}

fn status(kind: CallEndKind) -> ToolCallStatus {
    match kind {
        CallEndKind::Done => ToolCallStatus::Completed,
        CallEndKind::Failed
        | CallEndKind::Malformed
        | CallEndKind::NeedsApproval
        | CallEndKind::Denied
        | CallEndKind::Cancelled => ToolCallStatus::Failed,
    }
}

fn image(image: &Image) -> ToolCallContent {
    ToolCallContent::Content {
        content: ContentBlock::Image {
            data: image.base64.clone(),
            mime_type: image.media_type.clone(),
        },
    }
}

/// A path without `.` and `..`, as far as names alone tell.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// The hunks of a unified diff: what was there and what is there now, with the lines around.
fn hunks(unified: &str) -> Vec<(String, String)> {
    let mut hunks: Vec<(String, String)> = Vec::new();
    let mut before = ' ';
    for line in unified.lines() {
        if line.starts_with("@@") {
            hunks.push(Default::default());
            continue;
        }
        let (Some((old, new)), Some(mark)) = (hunks.last_mut(), line.chars().next()) else {
            continue;
        };
        let sides = match if mark == '\\' { before } else { mark } {
            '-' => [Some(old), None],
            '+' => [None, Some(new)],
            _ => [Some(old), Some(new)],
        };
        for side in sides.into_iter().flatten() {
            match mark {
                // The line before has no end.
                '\\' => side.truncate(side.len().saturating_sub(1)),
                _ => {
                    side.push_str(line.get(1..).unwrap_or_default());
                    side.push('\n');
                }
            }
        }
        before = mark;
    }
    hunks
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;
    use zeph_acp::update::{ToolCallContent, ToolKind};
    use zeph_agent::message::{Arguments, ToolCall};
    use zeph_agent::tool_host::{CallEnd, CallEndKind};
    use zeph_core::redact::Redactor;

    use super::{CallFacts, CallView, hunks, kind};

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall {
            id: "1".to_owned(),
            name: name.to_owned(),
            arguments: Arguments::read(arguments),
        }
    }

    fn view<'a>(call: &'a ToolCall, redactor: &'a Redactor) -> CallView<'a> {
        CallView {
            call,
            directory: Path::new("/src"),
            redactor,
        }
    }

    #[test]
    fn kinds_follow_the_table() {
        for (tool, expected) in [
            ("bash", ToolKind::Execute),
            ("file__read", ToolKind::Read),
            ("edit", ToolKind::Edit),
            ("find_path", ToolKind::Search),
            ("list_directory", ToolKind::Search),
            ("fetch", ToolKind::Fetch),
            ("delete_path", ToolKind::Delete),
            ("move_path", ToolKind::Move),
            ("create_directory", ToolKind::Other),
            ("copy_path", ToolKind::Other),
            ("notes__read", ToolKind::Other),
        ] {
            assert_eq!(kind(tool), expected, "{tool}");
        }
    }

    #[test]
    fn a_call_begins_with_what_it_is_about() {
        let redactor = Redactor::default();
        let call = call("read", r#"{"path":"../src/./a","offset":4}"#);
        let begun = serde_json::to_value(view(&call, &redactor).begin("x")).unwrap();
        assert_eq!(
            begun,
            json!({
                "toolCallId": "x", "title": "read ../src/./a", "name": "read", "kind": "read",
                "status": "in_progress", "locations": [{"path": "/src/a", "line": 5}],
                "rawInput": {"path": "../src/./a", "offset": 4},
            })
        );
    }

    #[test]
    fn an_edit_ends_with_the_hunks_it_changed() {
        let redactor = Redactor::default();
        let call = call("edit", r#"{"path":"a","old_string":"1","new_string":"2"}"#);
        let facts = CallFacts {
            structured: Some(json!({"diff": "--- a\n+++ a\n@@ -1,2 +1,2 @@\n x\n-1\n+2\n"})),
            ..CallFacts::default()
        };
        let end = CallEnd::of(CallEndKind::Done, "Edited a");
        let ended = view(&call, &redactor).end("x", (&end, &facts), None);
        let diff = ToolCallContent::Diff {
            path: "/src/a".to_owned(),
            old_text: Some("x\n1\n".to_owned()),
            new_text: "x\n2\n".to_owned(),
        };
        assert_eq!(
            ended.content.unwrap(),
            [diff, ToolCallContent::text("Edited a")]
        );
        let failed = CallEnd::of(CallEndKind::Denied, "no");
        let ended = view(&call, &redactor).end("x", (&failed, &facts), None);
        assert_eq!(ended.content.unwrap(), [ToolCallContent::text("no")]);
    }

    #[test]
    fn a_diff_has_as_many_hunks_as_it_names() {
        let two = "@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n c\n\\ No newline at end of file\n";
        assert_eq!(
            hunks(two),
            [
                ("a\n".to_owned(), "b\n".to_owned()),
                ("c".to_owned(), "c".to_owned())
            ]
        );
        assert!(hunks("no diff").is_empty());
    }
}
