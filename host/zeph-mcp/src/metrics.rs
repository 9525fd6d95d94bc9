//! What the endpoint counts, in the text format of Prometheus.
//!
//! No label holds what a client chose: tools are named as the catalog names them, and their number is bounded.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Upper bounds of the buckets of durations, in seconds.
const BOUNDS: [f64; 10] = [0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0];

/// Most tools that are counted by name; the others are counted together.
const TOOLS_MAX: usize = 512;

/// The name of those.
const OTHER: &str = "other";

/// What happened since the start.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    tools: BTreeMap<String, ToolCounts>,
    /// By status.
    responses: BTreeMap<u16, u64>,
    connections_refused: u64,
}

#[derive(Debug, Default)]
struct ToolCounts {
    outcomes: BTreeMap<&'static str, u64>,
    /// Calls whose duration lies in each bucket, not in one before it.
    buckets: [u64; BOUNDS.len()],
    n: u64,
    seconds: f64,
}

/// What is the case at this moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gauges {
    pub(crate) connections: usize,
    pub(crate) sessions: usize,
    pub(crate) calls: usize,
    pub(crate) streams: usize,
    /// 1 while the server ends.
    pub(crate) draining: usize,
}

impl Metrics {
    /// Counts a call of a tool of the catalog. `outcome` is `ok` or an error category.
    pub fn call(&self, tool: &str, outcome: &'static str, took: Duration) {
        let mut counts = self.counts();
        let is_known = counts.tools.contains_key(tool) || counts.tools.len() < TOOLS_MAX;
        let name = if is_known { tool } else { OTHER };
        let tool = counts.tools.entry(name.to_owned()).or_default();
        *tool.outcomes.entry(outcome).or_default() += 1;
        let seconds = took.as_secs_f64();
        if let Some(bucket) = BOUNDS.iter().position(|bound| seconds <= *bound) {
            tool.buckets[bucket] += 1;
        }
        tool.n += 1;
        tool.seconds += seconds;
    }

    /// Counts an answer.
    pub(crate) fn response(&self, status: u16) {
        *self.counts().responses.entry(status).or_default() += 1;
    }

    /// Counts a request whose connection found no place.
    pub(crate) fn connection_refused(&self) {
        self.counts().connections_refused += 1;
    }

    /// All of it, as Prometheus reads it.
    pub(crate) fn text(&self, now: Gauges, replica: Option<&str>) -> String {
        let counts = self.counts();
        let mut text = Text::default();
        counts.write_calls(&mut text);
        let responses = "zeph_mcp_http_responses_total";
        text.head(responses, "counter", "Responses over HTTP by status.");
        for (status, n) in &counts.responses {
            text.line(responses, &format!("status=\"{status}\""), n);
        }
        let refused = "zeph_mcp_connections_refused_total";
        text.head(
            refused,
            "counter",
            "Connections closed because there were too many.",
        );
        text.line(refused, "", counts.connections_refused);
        if let Some(replica) = replica {
            let info = "zeph_mcp_replica_info";
            text.head(info, "gauge", "The name of this replica.");
            text.line(info, &format!("replica=\"{}\"", escaped(replica)), 1);
        }
        let gauges = [
            ("zeph_mcp_connections", "Open connections.", now.connections),
            (
                "zeph_mcp_sessions",
                "Open sessions of older protocol revisions.",
                now.sessions,
            ),
            (
                "zeph_mcp_requests_in_flight",
                "Requests being answered.",
                now.calls,
            ),
            (
                "zeph_mcp_streams",
                "Streams kept open for notifications.",
                now.streams,
            ),
            (
                "zeph_mcp_draining",
                "1 while the server ends and takes no new requests.",
                now.draining,
            ),
        ];
        for (name, help, value) in gauges {
            text.head(name, "gauge", help);
            text.line(name, "", value);
        }
        text.0
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn write_calls(&self, text: &mut Text) {
        let calls = "zeph_mcp_tool_calls_total";
        text.head(
            calls,
            "counter",
            "Tool calls by tool and outcome: ok or an error category.",
        );
        for (tool, counts) in &self.tools {
            let tool = escaped(tool);
            for (outcome, n) in &counts.outcomes {
                text.line(calls, &format!("tool=\"{tool}\",outcome=\"{outcome}\""), n);
            }
        }
        let durations = "zeph_mcp_tool_call_duration_seconds";
        text.head(durations, "histogram", "Duration of tool calls.");
        for (tool, counts) in &self.tools {
            counts.write_durations(&escaped(tool), durations, text);
        }
    }
}

impl ToolCounts {
    fn write_durations(&self, tool: &str, name: &str, text: &mut Text) {
        let bucket = format!("{name}_bucket");
        let mut n_so_far = 0;
        for (bound, n) in BOUNDS.iter().zip(self.buckets) {
            n_so_far += n;
            text.line(
                &bucket,
                &format!("tool=\"{tool}\",le=\"{bound}\""),
                n_so_far,
            );
        }
        text.line(&bucket, &format!("tool=\"{tool}\",le=\"+Inf\""), self.n);
        let label = format!("tool=\"{tool}\"");
        text.line(&format!("{name}_sum"), &label, self.seconds);
        text.line(&format!("{name}_count"), &label, self.n);
    }
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.push(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        match labels {
            "" => self.push(format_args!("{name} {value}\n")),
            labels => self.push(format_args!("{name}{{{labels}}} {value}\n")),
        }
    }

    fn push(&mut self, line: std::fmt::Arguments<'_>) {
        // A text takes whatever is written to it.
        let _: std::fmt::Result = self.0.write_fmt(line);
    }
}

/// A value of a label.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Gauges, Metrics, OTHER, TOOLS_MAX};

    const GAUGES: Gauges = Gauges {
        connections: 3,
        sessions: 2,
        calls: 1,
        streams: 0,
        draining: 1,
    };

    #[test]
    fn calls_are_counted_by_tool_outcome_and_duration() {
        let metrics = Metrics::default();
        metrics.call("read", "ok", Duration::from_millis(3));
        metrics.call("read", "ok", Duration::from_millis(30));
        metrics.call("read", "timeout", Duration::from_secs(1_000));
        metrics.response(200);
        let text = metrics.text(GAUGES, Some("a"));
        for line in [
            r#"zeph_mcp_tool_calls_total{tool="read",outcome="ok"} 2"#,
            r#"zeph_mcp_tool_calls_total{tool="read",outcome="timeout"} 1"#,
            r#"zeph_mcp_tool_call_duration_seconds_bucket{tool="read",le="0.001"} 0"#,
            r#"zeph_mcp_tool_call_duration_seconds_bucket{tool="read",le="0.005"} 1"#,
            r#"zeph_mcp_tool_call_duration_seconds_bucket{tool="read",le="600"} 2"#,
            r#"zeph_mcp_tool_call_duration_seconds_bucket{tool="read",le="+Inf"} 3"#,
            r#"zeph_mcp_tool_call_duration_seconds_count{tool="read"} 3"#,
            r#"zeph_mcp_http_responses_total{status="200"} 1"#,
            "# TYPE zeph_mcp_connections gauge",
            "zeph_mcp_connections 3",
            "zeph_mcp_draining 1",
            "zeph_mcp_replica_info{replica=\"a\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn the_number_of_labels_is_bounded_and_no_label_ends_early() {
        let metrics = Metrics::default();
        for idx in 0..2 * TOOLS_MAX {
            metrics.call(&format!("t{idx}\"}} 1\nx{{\\"), "ok", Duration::ZERO);
        }
        let text = metrics.text(GAUGES, Some("a"));
        let calls = |line: &&str| line.starts_with("zeph_mcp_tool_calls_total");
        assert_eq!(text.lines().filter(calls).count(), TOOLS_MAX + 1);
        assert!(text.contains(&format!("tool=\"{OTHER}\",outcome=\"ok\"}} {TOOLS_MAX}")));
        assert!(!text.lines().any(|line| line.starts_with('x')));
    }
}
