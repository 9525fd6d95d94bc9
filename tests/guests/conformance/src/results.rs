//! What a call can come back with.

use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use zeph_plugin::{
    Blob, Content, Context, Outcome, Output, ResourceBody, ResourceContent, ToolError, log,
    progress as told,
};

use crate::said;

/// As long as the suite asks for between two messages.
const PAUSE: Duration = Duration::from_millis(50);

/// One red pixel.
const PNG: [u8; 69] = [
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00, 0x00, 0x90, 0x77, 0x53,
    0xde, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xf8, 0xcf, 0xc0, 0x00,
    0x00, 0x03, 0x01, 0x01, 0x00, 0xf7, 0x03, 0x41, 0x43, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e,
    0x44, 0xae, 0x42, 0x60, 0x82,
];

/// A WAV file without a sample.
const WAV: &[u8] =
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\0\0\0\0";

pub(crate) fn text(_: &Value, _: &Context) -> Result<Outcome, ToolError> {
    said("This is a simple text response for testing.")
}

pub(crate) fn image(_: &Value, _: &Context) -> Result<Outcome, ToolError> {
    only(vec![Content::Image(blob("image/png", &PNG))])
}

pub(crate) fn audio(_: &Value, _: &Context) -> Result<Outcome, ToolError> {
    only(vec![Content::Audio(blob("audio/wav", WAV))])
}

pub(crate) fn resource(_: &Value, _: &Context) -> Result<Outcome, ToolError> {
    only(vec![embedded(
        "test://embedded-resource",
        "text/plain",
        "This is an embedded resource content.",
    )])
}

pub(crate) fn mixed(_: &Value, _: &Context) -> Result<Outcome, ToolError> {
    only(vec![
        Content::Text("Multiple content types test:".to_owned()),
        Content::Image(blob("image/png", &PNG)),
        embedded(
            "test://mixed-content-resource",
            "application/json",
            r#"{"test":"data","value":123}"#,
        ),
    ])
}

pub(crate) fn logs(_: &Value, _: &Context) -> Result<Outcome, ToolError> {
    log::info("Tool execution started");
    sleep(PAUSE);
    log::info("Tool processing data");
    sleep(PAUSE);
    log::info("Tool execution completed");
    said("logged")
}

pub(crate) fn fails(_: &Value, _: &Context) -> Result<Outcome, ToolError> {
    Err(ToolError::permanent(
        "This tool intentionally returns an error for testing",
    ))
}

pub(crate) fn progress(_: &Value, _: &Context) -> Result<Outcome, ToolError> {
    for completed in [0, 50, 100] {
        told::count("working", completed, Some(100));
        // After the last one too: the host thins bursts.
        sleep(PAUSE);
    }
    said("done")
}

pub(crate) fn waits(_: &Value, _: &Context) -> Result<Outcome, ToolError> {
    sleep(PAUSE);
    said("done")
}

fn only(content: Vec<Content>) -> Result<Outcome, ToolError> {
    Ok(Output {
        content,
        ..Output::text("")
    }
    .into())
}

fn blob(media_type: &str, data: &[u8]) -> Blob {
    Blob {
        media_type: media_type.to_owned(),
        data: data.to_vec(),
    }
}

fn embedded(uri: &str, media_type: &str, text: &str) -> Content {
    Content::Resource(ResourceContent {
        uri: uri.to_owned(),
        media_type: Some(media_type.to_owned()),
        body: ResourceBody::Text(text.to_owned()),
    })
}
