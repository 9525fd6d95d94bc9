//! What is made from the keys: the schema, of the types they are declared by and of `config/default.toml`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value as Json;

use crate::keys::join;
use crate::known;
use crate::raw::RawConfig;

/// The built-in layer as its author wrote it.
pub(super) const DEFAULTS: &str = include_str!("../../../../config/default.toml");

/// The schema with the built-in defaults and what `config/default.toml` says of each key.
pub(super) fn schema() -> Json {
    let mut schema = shape::<RawConfig>();
    let meanings = meanings(DEFAULTS);
    for known::Default { key, value, .. } in known::DEFAULTS {
        let pointer = format!("/properties/{}", key.replace('.', "/properties/"));
        if let Some(Json::Object(leaf)) = schema.pointer_mut(&pointer) {
            leaf.insert(
                "default".to_owned(),
                serde_json::to_value(value.to_value()).unwrap(),
            );
            let meaning = meanings.get(*key).cloned().unwrap_or_default();
            leaf.insert("description".to_owned(), meaning.into());
        }
    }
    schema
}

/// The schema without defaults. No key is required: what a file does not say, a lower layer does.
pub(super) fn shape<T: JsonSchema>() -> Json {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut shape = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    drop_required(&mut shape);
    shape["title"] = "zeph-host configuration".into();
    shape
}

fn drop_required(node: &mut Json) {
    let Json::Object(fields) = node else { return };
    fields.remove("required");
    if let Some(Json::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(drop_required);
    }
}

/// The text above every key of a file in the form of `config/default.toml`, on one line, by the dotted key.
fn meanings(text: &str) -> BTreeMap<String, String> {
    let mut meanings = BTreeMap::new();
    let (mut section, mut above) = ("", Vec::new());
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix('#') {
            above.push(comment.trim());
            continue;
        }
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = name;
        } else if let Some((name, _)) = line.split_once(" = ") {
            meanings.insert(join(section, name), above.join(" "));
        }
        above.clear();
    }
    meanings
}
