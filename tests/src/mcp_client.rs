//! The client under the conformance suite: connects to the URL in its last argument as the host does, asks for all that the server
//! offers, and calls every tool once. Where the server wants a login, it logs in and begins again.

#![expect(clippy::print_stderr, reason = "the suite shows it")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, LOCATION};
use http::{HeaderMap, Request};
use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, GetPromptRequestParams,
    ReadResourceRequestParams,
};
use rmcp::transport::auth::WWWAuthenticateParams;
use serde_json::{Map, Value, json};
use url::Url;
use zeph_core::network::{EgressLimits, EgressSettings, PrivateHost};
use zeph_egress::{Egress, OwnClient, OwnLimits, OwnPatience, Pending};
use zeph_mcp::client::oauth::{ClientIdentity, LoginError, PendingLogin, RemoteServer};
use zeph_mcp::client::{
    CallControl, Connection, ConnectionOptions, Definitions, Era, HttpServer, McpError, Offers,
    ServerListener, ServerTransport, ToolDefinition,
};

/// Longer than any scenario takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Most logins for one server: one that is never content must not be asked for ever.
const LOGINS_MAX: usize = 3;

/// Accepts every question with its defaults.
#[derive(Debug)]
struct Agreeable;

impl ServerListener for Agreeable {
    fn elicit(&self, question: ElicitRequestParams) -> Pending<'_, ElicitResult> {
        let question = serde_json::to_value(question).unwrap_or_default();
        let fields = question["requestedSchema"]["properties"].as_object();
        let given = fields.into_iter().flatten().map(|(name, field)| {
            let value = field.get("default").cloned();
            (name.clone(), value.unwrap_or_else(|| value_of(field)))
        });
        let given: Map<String, Value> = given.collect();
        let answer = ElicitResult::new(ElicitationAction::Accept).with_content(json!(given));
        Box::pin(std::future::ready(answer))
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let Some(url) = std::env::args().next_back() else {
        return ExitCode::from(2);
    };
    match used(&url).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Uses the server; where it asks for a login, for other scopes or for another authorization server, logs in and begins again.
async fn used(url: &str) -> Result<(), McpError> {
    let url = Url::parse(url).map_err(|error| McpError::InvalidInput(error.to_string()))?;
    let mut login = Login::default();
    for _login in 0..LOGINS_MAX {
        match session(&url, login.headers.clone()).await {
            Err(McpError::Authorization { challenge }) => {
                let renewed = login.renewed(&url, challenge.as_deref()).await;
                login = renewed.map_err(|error| McpError::Unreachable(error.to_string()))?;
            }
            ended => return ended,
        }
    }
    session(&url, login.headers).await
}

async fn session(url: &Url, headers: HeaderMap) -> Result<(), McpError> {
    let connection = open(url, headers).await?;
    let result = match connection.definitions().await {
        Ok(found) => {
            for note in &found.notes {
                eprintln!("{note}");
            }
            use_all(&connection, &found).await
        }
        Err(error) => Err(error),
    };
    connection.close().await;
    result
}

async fn open(url: &Url, headers: HeaderMap) -> Result<Connection, McpError> {
    let server = HttpServer::new(&egress(), url.clone(), headers, None)?;
    let mut options = ConnectionOptions::new("0.0.0");
    options.offers = Offers { elicitation: true };
    options.era = match variable("MCP_CONFORMANCE_PROTOCOL_VERSION").as_deref() {
        Some("2026-07-28") | None => Era::Auto,
        Some(_) => Era::Initialize,
    };
    let transport = ServerTransport::Http(Box::new(server));
    Connection::open(transport, options, Arc::new(Agreeable)).await
}

/// What requests carry, and what was granted so far.
#[derive(Default)]
struct Login {
    headers: HeaderMap,
    scopes: Vec<String>,
}

impl Login {
    /// Logs in as a person would, who names the hosts that the login asks for and agrees in the browser. To the scopes that were granted
    /// come those that `challenge` asks for.
    async fn renewed(
        &self,
        url: &Url,
        challenge: Option<&str>,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let context = context();
        let text = |key: &str| context[key].as_str().map(str::to_owned);
        let identity = ClientIdentity {
            client_id: text("client_id"),
            client_secret: text("client_secret"),
            metadata_url: Some("https://conformance-test.local/client-metadata.json".to_owned()),
            scopes: self.wanted(url, challenge),
        };
        let redirect = Url::parse("http://127.0.0.1:3000/callback")?;
        let mut hosts = Vec::new();
        let pending = loop {
            let server = RemoteServer::new("suite", url.clone(), hosts.clone());
            let server = server.challenged(challenge.map(str::to_owned));
            match PendingLogin::begin(&server, &egress(), &redirect, &identity).await {
                Err(LoginError::Host { host, .. }) if hosts.len() < 4 => hosts.push(host.parse()?),
                begun => break begun?,
            }
        };
        let redirected = pending.read(&agreed(pending.url()).await?)?;
        let tokens = pending.complete(redirected, now_s()).await?;
        let header = tokens.bearer().header().ok_or("the token is no header")?;
        Ok(Self {
            headers: HeaderMap::from_iter([(AUTHORIZATION, header)]),
            scopes: tokens.scopes,
        })
    }

    /// The scopes to ask for; none at the first login, which asks for those that the server names.
    fn wanted(&self, url: &Url, challenge: Option<&str>) -> Vec<String> {
        if self.scopes.is_empty() {
            return Vec::new();
        }
        let challenge = challenge.map(|header| WWWAuthenticateParams::parse(header, url));
        let challenged = challenge.and_then(|challenge| challenge.scope);
        let challenged = challenged.as_deref().unwrap_or_default();
        let mut wanted = self.scopes.clone();
        for scope in challenged.split_whitespace() {
            if !wanted.iter().any(|known| known == scope) {
                wanted.push(scope.to_owned());
            }
        }
        wanted
    }
}

/// Where the browser is sent back to: the suite agrees to everything.
async fn agreed(url: &Url) -> Result<String, Box<dyn std::error::Error>> {
    let limits = OwnLimits {
        time: PATIENCE,
        bytes: 1 << 20,
    };
    let patience = OwnPatience {
        headers: PATIENCE,
        idle: PATIENCE,
        total: PATIENCE,
    };
    let client = OwnClient::new(&egress(), &[url.as_str()], limits)?;
    let request = Request::get(url.as_str()).body(Bytes::new())?;
    let answer = client.send(request, patience).await?;
    let location = answer
        .headers
        .get(LOCATION)
        .ok_or("the browser is not sent back")?;
    Ok(location.to_str()?.to_owned())
}

async fn use_all(connection: &Connection, found: &Definitions) -> Result<(), McpError> {
    for tool in &found.tools {
        for arguments in arguments(tool, found) {
            let calling = connection.call(&tool.name, arguments, CallControl::default());
            match calling.await {
                Err(error @ McpError::Authorization { .. }) => return Err(error),
                // A tool that fails is a result of the scenario.
                Err(error) => eprintln!("{}: {error}", tool.name),
                Ok(_) => {}
            }
        }
    }
    for resource in &found.resources {
        let params = ReadResourceRequestParams::new(&resource.shown.uri);
        connection
            .read_resource(params, CallControl::default())
            .await?;
    }
    for prompt in &found.prompts {
        let params = GetPromptRequestParams::new(&prompt.shown.name);
        connection.prompt(params, CallControl::default()).await?;
    }
    Ok(())
}

/// The arguments of each call: what the scenario says, or something that agrees with the schema.
fn arguments(tool: &ToolDefinition, found: &Definitions) -> Vec<Map<String, Value>> {
    let context = context();
    let told = context["toolCalls"].as_array().into_iter().flatten();
    let told = told.filter(|call| call["name"] == tool.name.as_str());
    let told: Vec<_> = told
        .filter_map(|call| call["arguments"].as_object().cloned())
        .collect();
    if !told.is_empty() {
        return told;
    }
    let fields = tool.parameters.schema()["properties"].as_object();
    let given = fields.into_iter().flatten().map(|(name, field)| {
        let other = found
            .tools
            .iter()
            .find(|other| name == "schema" && other.name != tool.name);
        let schema = other.map(|other| other.parameters.schema().clone());
        (name.clone(), schema.unwrap_or_else(|| value_of(field)))
    });
    vec![given.collect()]
}

fn value_of(field: &Value) -> Value {
    match field["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("text"),
    }
}

/// The way out of a host whose operator opened this machine: the servers of the suite are at loopback ports of their own.
fn egress() -> Egress {
    let opened = ["localhost", "127.0.0.1"].map(|host| PrivateHost {
        host: host.parse().expect("a host"),
        ports: (1..=u16::MAX).collect(),
        plain_http: true,
    });
    Egress::new(&EgressSettings {
        private: opened.into(),
        proxy: None,
        ca_file: None,
        limits: EgressLimits {
            connect: PATIENCE,
            header: PATIENCE,
            idle: PATIENCE,
            total: PATIENCE,
            header_bytes: 65_536,
            body_bytes: 1 << 20,
            redirects: 0,
            requests: 8,
            connections: 8,
        },
    })
}

/// What a scenario tells the client.
fn context() -> Value {
    let context = variable("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    serde_json::from_str(&context).unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "the clock of the client")]
fn now_s() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the suite speaks through its environment"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
