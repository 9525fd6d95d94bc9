//! Scenarios: what a scripted server answers, one step for each request.

use serde::Deserialize;
use serde_json::{Map, Value};

/// What a server plays.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is about, for people.
    pub about: String,
    /// One for each request, in order.
    pub steps: Vec<ScriptedStep>,
    /// Whether the last step is played for ever.
    #[serde(default)]
    pub repeats: bool,
    /// How requests for vectors of texts are answered; they take no step.
    #[serde(default)]
    pub embedding: ScriptedEmbedding,
    /// What a client has to make of it; read by tests alone.
    #[serde(default)]
    pub expected: Value,
}

/// Vectors of texts that are the same on every machine: one dimension for each word, as far as they reach, and for each group of words.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedEmbedding {
    /// Numbers of a vector.
    pub dimensions: usize,
    /// Groups of words that mean the same, in lower case.
    pub meanings: Vec<Vec<String>>,
    /// What goes wrong, one for each request, in order; nothing with those that follow.
    pub faults: Vec<EmbeddingFault>,
}

/// What goes wrong with a request for vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum EmbeddingFault {
    /// Nothing, this time.
    None,
    /// This status in place of an answer.
    Status(u16),
    /// No answer, and a connection that stays open.
    Hang,
    /// One vector is missing.
    Short,
    /// The last vector is longer than the others.
    Uneven,
    /// The answer is not JSON.
    Garbage,
}

impl Default for ScriptedEmbedding {
    fn default() -> Self {
        Self {
            dimensions: 64,
            meanings: Vec::new(),
            faults: Vec::new(),
        }
    }
}

/// What is answered to one request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedStep {
    /// The answer; empty where there is a fault instead.
    #[serde(default)]
    pub answer: ScriptedAnswer,
    /// What goes wrong.
    #[serde(default)]
    pub fault: Option<ScriptedFault>,
}

/// An answer in the terms of no provider.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedAnswer {
    /// Readable reasoning.
    #[serde(default)]
    pub thinking: Option<String>,
    /// What seals the reasoning, where the provider seals it.
    #[serde(default)]
    pub seal: Option<String>,
    /// Text for the user.
    #[serde(default)]
    pub text: Option<String>,
    /// Calls of tools.
    #[serde(default)]
    pub calls: Vec<ScriptedCall>,
    /// How it ends. When nothing is said: by its calls, or by itself.
    #[serde(default)]
    pub stop: Option<ScriptedStop>,
    /// What it took.
    #[serde(default)]
    pub usage: ScriptedUsage,
}

/// A call.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// Its id; made from its place when nothing is said, and left out where the provider has none.
    #[serde(default)]
    pub id: Option<String>,
    /// The name of the tool.
    pub name: String,
    /// The arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The text in place of the arguments, which need not be JSON.
    #[serde(default)]
    pub raw_arguments: Option<String>,
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptedStop {
    /// By itself.
    End,
    /// It waits for results.
    Calls,
    /// A limit of length.
    Length,
    /// The model refuses.
    Refusal,
    /// A reason that no client knows.
    Unknown,
}

/// Tokens; parts that do not overlap, as a client counts them.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedUsage {
    /// Of the request, without the cache.
    pub input: u64,
    /// From the cache.
    pub cache_read: u64,
    /// Into the cache.
    pub cache_write: u64,
    /// Of the answer.
    pub output: u64,
    /// Of it, reasoning.
    pub reasoning: u64,
    /// Whether the numbers of the answer are nonsense: negative, texts, or missing.
    pub is_wrong: bool,
}

impl Default for ScriptedUsage {
    fn default() -> Self {
        Self {
            input: 100,
            cache_read: 40,
            cache_write: 0,
            output: 20,
            reasoning: 5,
            is_wrong: false,
        }
    }
}

/// What goes wrong.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ScriptedFault {
    /// An error in place of an answer.
    Status {
        /// The status.
        status: u16,
        /// Seconds to wait.
        #[serde(default)]
        retry_after: Option<f64>,
        /// `billing`, `rate`, `overloaded`, `length`, `key`; something else is a failure of the server.
        #[serde(default)]
        says: Option<String>,
    },
    /// The answer is cut.
    Cut {
        /// After what.
        within: CutPlace,
        /// Whether the body ends as if it were complete. Otherwise the connection breaks.
        #[serde(default)]
        is_clean: bool,
    },
    /// An error in the middle of a streamed answer.
    ErrorWithin {
        /// As for `status`.
        says: String,
    },
    /// Nothing comes, for ever.
    HangBeforeHeader,
    /// Something comes, then nothing, for ever.
    HangWithin,
    /// The answer is late, but the connection lives.
    Pings {
        /// How many.
        count: usize,
        /// How long after each.
        pause_ms: u64,
    },
}

/// Where an answer is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutPlace {
    /// In its text.
    Text,
    /// In the arguments of its first call.
    Arguments,
    /// Before what says how it ended.
    End,
}

impl Scenario {
    /// Reads a scenario.
    ///
    /// Errors: what is wrong, with its line.
    pub fn parse(json: &str) -> serde_json::Result<Self> {
        serde_json::from_str(json)
    }
}

impl ScriptedAnswer {
    pub(super) fn stop(&self) -> ScriptedStop {
        self.stop.unwrap_or(match self.calls.is_empty() {
            true => ScriptedStop::End,
            false => ScriptedStop::Calls,
        })
    }
}

impl ScriptedCall {
    pub(super) fn id(&self, place: usize) -> String {
        let id = self.id.clone();
        id.unwrap_or_else(|| format!("call_{place}_{}", self.name))
    }

    pub(super) fn text(&self) -> String {
        let raw = self.raw_arguments.clone();
        raw.unwrap_or_else(|| Value::Object(self.arguments.clone()).to_string())
    }

    /// For formats that send an object: text that is none becomes a string.
    pub(super) fn value(&self) -> Value {
        match &self.raw_arguments {
            Some(raw) => serde_json::from_str(raw).unwrap_or_else(|_| Value::from(raw.as_str())),
            None => Value::Object(self.arguments.clone()),
        }
    }
}
