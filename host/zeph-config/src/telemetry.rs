//! Where spans of calls go: the standard variables of OpenTelemetry, which other programs of the user are set up with as well.

use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::surroundings::variable;

/// How long one request to the collector may take, unless a variable says otherwise: the specification's default.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What spans are recorded under, unless a variable says otherwise.
const SERVICE: &str = "zeph-host";

/// Where spans go, and what they hold.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetrySettings {
    /// The whole URL that spans are sent to.
    pub url: String,
    /// Headers of these requests, such as a key. They are secrets.
    pub headers: Vec<(String, String)>,
    /// How long one request may take.
    pub timeout: Duration,
    /// What is said of this process, `service.name` first.
    pub resource: Vec<(String, String)>,
    /// Whether arguments and results of calls are part of spans.
    pub captures_content: bool,
    /// Which calls have spans.
    pub sampler: Sampler,
}

/// Which calls have spans.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// Whether the caller's own decision counts where it made one.
    pub follows_parent: bool,
    /// The share of the others, from 0 to 1.
    pub ratio: f64,
}

impl TelemetrySettings {
    /// What the variables of this process say; none where no endpoint is named, or spans are turned off.
    ///
    /// Errors: a sentence that names the variable.
    pub fn of_process() -> Result<Option<Self>, String> {
        Self::of(variable)
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let of_traces = |rest: &str| {
            let own = format!("OTEL_EXPORTER_OTLP_TRACES_{rest}");
            let shared = format!("OTEL_EXPORTER_OTLP_{rest}");
            let found = set(&own).map(|value| (own, value));
            found.or_else(|| Some((shared.clone(), set(&shared)?)))
        };
        let is_off =
            set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let exporter = set("OTEL_TRACES_EXPORTER");
        let endpoint = of_traces("ENDPOINT");
        match exporter.as_deref() {
            _ if is_off => return Ok(None),
            None if endpoint.is_none() => return Ok(None),
            Some("none") => return Ok(None),
            None | Some("otlp") => {}
            Some(other) => return Err(unknown("OTEL_TRACES_EXPORTER", other, "`otlp` or `none`")),
        }
        if let Some((name, protocol)) = of_traces("PROTOCOL")
            && protocol != "http/json"
        {
            return Err(unknown(&name, &protocol, "`http/json`"));
        }
        let url = match endpoint {
            Some((name, url)) if name.contains("_TRACES_") => url,
            Some((_, url)) => format!("{}/v1/traces", url.trim_end_matches('/')),
            None => "http://localhost:4318/v1/traces".to_owned(),
        };
        let headers = match of_traces("HEADERS") {
            Some((name, text)) => pairs(&name, &text)?,
            None => Vec::new(),
        };
        let timeout = match of_traces("TIMEOUT") {
            Some((name, text)) => milliseconds(&name, &text)?,
            None => TIMEOUT,
        };
        let capture = set("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT");
        let captures = |value: &str| {
            matches!(
                value,
                "true" | "True" | "TRUE" | "span_only" | "span_and_event"
            )
        };
        Ok(Some(Self {
            url,
            headers,
            timeout,
            resource: resource(&set)?,
            captures_content: capture.is_some_and(|value| captures(&value)),
            sampler: sampler(&set)?,
        }))
    }
}

/// What is said of the process. The name of the service comes first.
fn resource(set: &impl Fn(&str) -> Option<String>) -> Result<Vec<(String, String)>, String> {
    const NAME: &str = "OTEL_RESOURCE_ATTRIBUTES";
    const SERVICE_NAME: &str = "service.name";
    let mut attributes = match set(NAME) {
        Some(text) => pairs(NAME, &text)?,
        None => Vec::new(),
    };
    let named = attributes.iter().position(|(key, _)| key == SERVICE_NAME);
    let named = named.map(|idx| attributes.remove(idx).1);
    let service = set("OTEL_SERVICE_NAME").or(named);
    let service = service.unwrap_or_else(|| SERVICE.to_owned());
    attributes.insert(0, (SERVICE_NAME.to_owned(), service));
    Ok(attributes)
}

fn sampler(set: &impl Fn(&str) -> Option<String>) -> Result<Sampler, String> {
    const NAME: &str = "OTEL_TRACES_SAMPLER";
    const ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";
    let name = set(NAME).unwrap_or_else(|| "parentbased_always_on".to_owned());
    let own = name.strip_prefix("parentbased_");
    let ratio = match own.unwrap_or(&name) {
        "always_on" => 1.0,
        "always_off" => 0.0,
        "traceidratio" => {
            let text = set(ARGUMENT).unwrap_or_else(|| "1".to_owned());
            let ratio = text
                .parse()
                .ok()
                .filter(|ratio| (0.0..=1.0).contains(ratio));
            ratio.ok_or_else(|| unknown(ARGUMENT, &text, "a number from 0 to 1"))?
        }
        _ => {
            let known =
                "`always_on`, `always_off` or `traceidratio`, each also with `parentbased_`";
            return Err(unknown(NAME, &name, known));
        }
    };
    Ok(Sampler {
        follows_parent: own.is_some(),
        ratio,
    })
}

/// `key=value,key=value`, with `%` before what is escaped.
fn pairs(name: &str, text: &str) -> Result<Vec<(String, String)>, String> {
    let bad = || format!("`{name}` is not a list of `key=value`, separated by commas");
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=').ok_or_else(bad)?;
        let value = percent_decode_str(value.trim()).decode_utf8();
        let value = value.map_err(|_| bad())?.into_owned();
        match key.trim() {
            "" => Err(bad()),
            key => Ok((key.to_owned(), value)),
        }
    };
    let parts = text.split(',').filter(|part| !part.trim().is_empty());
    parts.map(pair).collect()
}

fn milliseconds(name: &str, text: &str) -> Result<Duration, String> {
    let number: Result<u64, _> = text.trim().parse();
    let number = number.ok().filter(|number| (1..=600_000).contains(number));
    let bad = || unknown(name, text, "milliseconds, from 1 to 600000");
    number.map(Duration::from_millis).ok_or_else(bad)
}

fn unknown(name: &str, value: &str, known: &str) -> String {
    let value = zeph_core::failure::one_line(value, 60);
    format!("`{name}` is `{value}`; this program knows {known}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::TelemetrySettings;

    fn of(variables: &[(&str, &str)]) -> Result<Option<TelemetrySettings>, String> {
        TelemetrySettings::of(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    const BASE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/");

    #[test]
    fn nothing_is_sent_unless_a_variable_asks_for_it() {
        for variables in [
            &[][..],
            &[("OTEL_SERVICE_NAME", "x")],
            &[BASE, ("OTEL_SDK_DISABLED", "true")],
            &[BASE, ("OTEL_TRACES_EXPORTER", "none")],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
        ] {
            assert_eq!(of(variables), Ok(None), "{variables:?}");
        }
        let by_exporter = of(&[("OTEL_TRACES_EXPORTER", "otlp")]).unwrap().unwrap();
        assert_eq!(by_exporter.url, "http://localhost:4318/v1/traces");
    }

    #[test]
    fn the_variables_of_the_specification_are_read() {
        let settings = of(&[BASE]).unwrap().unwrap();
        assert_eq!(settings.url, "http://127.0.0.1:4318/v1/traces");
        assert_eq!(settings.timeout, Duration::from_secs(10));
        let service = ("service.name".to_owned(), "zeph-host".to_owned());
        assert_eq!(settings.resource, [service]);
        assert!(!settings.captures_content);
        assert!(settings.sampler.follows_parent);

        let settings = of(&[
            BASE,
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c.example/in"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x=1,"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
            ("OTEL_RESOURCE_ATTRIBUTES", "a=b,service.name=other"),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
            ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
        ]);
        let settings = settings.unwrap().unwrap();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(settings.url, "https://c.example/in");
        assert_eq!(settings.headers, [pair("api-key", "a b"), pair("x", "1")]);
        assert_eq!(settings.timeout, Duration::from_millis(250));
        let resource = [pair("service.name", "other"), pair("a", "b")];
        assert_eq!(settings.resource, resource);
        assert!(settings.captures_content);
        let sampler = settings.sampler;
        assert_eq!((sampler.follows_parent, sampler.ratio), (false, 0.25));
    }

    #[test]
    fn a_wrong_variable_is_named() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "key"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_RESOURCE_ATTRIBUTES", "=x"),
            ("OTEL_TRACES_SAMPLER", "sometimes"),
            ("OTEL_TRACES_EXPORTER", "zipkin"),
        ] {
            let error = of(&[BASE, (name, value)]).unwrap_err();
            assert!(error.contains(&format!("`{name}`")), "{name}: {error}");
        }
        let ratio = [
            BASE,
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "2"),
        ];
        assert!(of(&ratio).unwrap_err().contains("OTEL_TRACES_SAMPLER_ARG"));
    }
}
