//! Secrets of the operator: a guest and a command may use one at its host, and neither sees its value.
//!
//! The host is a server of the self-test that repeats what it was sent, as it came and in the forms in which programs write it.

mod echo;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt as _, Empty};
use zeph_core::network::{ExitHost, Inspection, Passage, PrivateHost};
use zeph_core::secret::SecretUse;
use zeph_egress::Dialer;
use zeph_egress::exit::{ExitLimits, ExitProxy, SecretValues};
use zeph_engine::{HttpExit, HttpPatience};
use zeph_shell::jail::{Jail, JailPolicy, Network};

use self::echo::EchoServer;
use crate::egress::call_exit;
use crate::jail::JailLab;
use crate::lab::{GuestCall, Lab, PATIENT};
use crate::{CheckFuture, CheckResult, How, Probe, ProductParts};

pub(crate) const PROBES: &[Probe] = &[Probe {
    name: "secrets",
    tried: "looking for a secret that the requests of a call get: in variables and in answers that repeat it; sending it in a URL",
    how: How::Own(of_guests),
}];

/// The name of the wall of commands.
pub(crate) const OF_COMMANDS: &str = "jail: secrets";

/// The name of the secret.
const NAME: &str = "SELFTEST";

/// What a command prints that looks for it everywhere, and asks the server where there is a client.
const LINE: &str = r#"
    env; set; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/HOST/maps
    cat ../outside/secrets/* /proc/self/cwd/../outside/secrets/* ~/* "$SSL_CERT_FILE"
    if command -v curl >/dev/null; then
        curl -sS -i --noproxy '' https://localhost:SERVER/
        curl -sS -i --noproxy '' -H 'Accept-Encoding: gzip' https://localhost:SERVER/ | base64
    fi
    echo done
"#;

/// A secret that nobody else has.
struct TestSecret {
    value: String,
    values: Arc<dyn SecretValues>,
    used: SecretUse,
}

impl TestSecret {
    fn new(folder: &Path, host: &str, parts: &ProductParts) -> io::Result<Self> {
        let value = format!("Bearer {}", uuid::Uuid::new_v4());
        let used = SecretUse::new(NAME, host, "authorization", None);
        Ok(Self {
            values: (parts.secrets)(folder, NAME, &value)?,
            used: used.map_err(io::Error::other)?,
            value,
        })
    }

    /// Whether `text` holds it, as it is or as base64.
    fn is_in(&self, text: &str) -> bool {
        let credential = self.value.trim_start_matches("Bearer ");
        let encoded = STANDARD.encode(&self.value);
        text.contains(credential) || text.contains(&encoded)
    }
}

fn of_guests(lab: &Lab) -> CheckFuture<'_> {
    Box::pin(async move {
        let tried = guests(lab).await;
        tried.unwrap_or_else(|error| CheckResult::unavailable(format!("no server: {error}")))
    })
}

/// Errors: nothing can be tried here.
async fn guests(lab: &Lab) -> io::Result<CheckResult> {
    let server = EchoServer::plain().await?;
    let host = format!("127.0.0.1:{}", server.port);
    let secret = TestSecret::new(&lab.dir().join("secrets"), &host, lab.parts())?;
    let access = format!("http://{host}").parse().map_err(io::Error::other)?;
    let used = std::slice::from_ref(&secret.used);
    let (secrets, _) = secret.values.of_request(used, &[]);
    let exit = (lab.parts().exit)(call_exit(
        access,
        &[opened("127.0.0.1", server.port)?],
        secrets,
    ));
    let looks = GuestCall {
        http: Some(Arc::clone(&exit)),
        ..GuestCall::new("surroundings", "a", PATIENT)
    };
    let seen = match lab.call(looks).await {
        Some(Ok(output)) => output.to_text(),
        _ => "nothing, in its time".to_owned(),
    };
    let answer = get(&exit, &format!("http://{host}/")).await;
    let in_url = get(
        &exit,
        &format!("http://{host}/?{}", secret.value.replace(' ', "%20")),
    )
    .await;
    let received = server.received();
    Ok(match (answer, in_url) {
        _ if seen != "00" => {
            CheckResult::broken(format!("a guest saw of its surroundings: {seen}"))
        }
        (Err(error), _) => CheckResult::broken(format!("no request was answered: {error}")),
        (Ok(answer), _) if secret.is_in(&answer) => {
            CheckResult::broken("an answer repeated the secret to the guest")
        }
        (_, Ok(_)) => CheckResult::broken("a URL with the secret was sent"),
        _ if !secret.is_in(&received) => {
            CheckResult::broken("the request of a guest did not get the secret")
        }
        _ => CheckResult::Holds,
    })
}

/// An answer with its header, as one text.
async fn get(exit: &Arc<dyn HttpExit>, url: &str) -> Result<String, String> {
    let empty = Empty::new().map_err(|never| match never {}).boxed_unsync();
    let request = http::Request::get(url).body(empty);
    let request = request.map_err(|error| error.to_string())?;
    let sent = exit.send(request, HttpPatience::default());
    let answer = sent.map_err(|failure| failure.to_string())?.await;
    let (head, body) = answer.map_err(|failure| failure.to_string())?.into_parts();
    let body = body.collect().await;
    let body = body.map_err(|failure| failure.to_string())?.to_bytes();
    let mut text = String::new();
    for (name, value) in &head.headers {
        text.push_str(&format!(
            "{name}: {}\n",
            String::from_utf8_lossy(value.as_bytes())
        ));
    }
    Ok(text + &String::from_utf8_lossy(&body))
}

fn opened(host: &str, port: u16) -> io::Result<PrivateHost> {
    Ok(PrivateHost {
        host: host.parse().map_err(io::Error::other)?,
        ports: vec![port],
        plain_http: true,
    })
}

/// What a command finds of a secret that egress adds to its requests.
pub(crate) async fn of_commands(search_path: &[PathBuf], parts: &ProductParts) -> CheckResult {
    let tried = commands(search_path, parts).await;
    tried.unwrap_or_else(|verdict| verdict)
}

async fn commands(
    search_path: &[PathBuf],
    parts: &ProductParts,
) -> Result<CheckResult, CheckResult> {
    let missing = |error: io::Error| CheckResult::unavailable(format!("no server: {error}"));
    let server = EchoServer::tls().await.map_err(missing)?;
    let host = format!("localhost:{}", server.port);
    let mut made = None;
    let lab = JailLab::new(search_path, |policy| {
        // Beside the workspace, as the host's own files are.
        let folder = policy.roots.first().and_then(|root| root.parent());
        let folder = folder.unwrap_or(Path::new("/")).join("outside/secrets");
        let secret = made.insert(TestSecret::new(&folder, &host, parts)?);
        jail(policy, &server, secret, parts)
    });
    let lab = lab.and_then(JailLab::in_full)?;
    let Some(secret) = made else {
        return Err(CheckResult::unavailable("no secret was stored"));
    };
    let line = LINE.replace("SERVER", &server.port.to_string());
    let printed = lab.printed(&line).await?;
    let received = server.received();
    Ok(match () {
        () if secret.is_in(&printed) => CheckResult::broken("it printed the secret"),
        () if !printed.ends_with("done\n") => CheckResult::broken("it did not end"),
        () if received.is_empty() => CheckResult::unavailable(
            "no request was made, because commands have no curl; variables, files and processes do not show a secret",
        ),
        () if !secret.is_in(&received) => {
            CheckResult::broken("the request of a command did not get the secret")
        }
        () => CheckResult::Holds,
    })
}

/// A jail whose commands reach the server, where TLS ends in the host and the secret is added.
fn jail(
    policy: JailPolicy,
    server: &EchoServer,
    secret: &TestSecret,
    parts: &ProductParts,
) -> io::Result<Jail> {
    let host = ExitHost {
        pattern: format!("localhost:{}", server.port)
            .parse()
            .map_err(io::Error::other)?,
        passage: Passage::Inspected(Inspection {
            secrets: vec![secret.used.clone()],
            ..Inspection::default()
        }),
    };
    let dialer = Dialer::new([opened("localhost", server.port)?].into());
    let trusted = || Ok(server.authority().into_iter().collect());
    let values = Arc::clone(&secret.values);
    let proxy = ExitProxy::new(vec![host], dialer, ExitLimits::default(), trusted, values);
    let policy = JailPolicy {
        network: Network::Hosts,
        ..policy
    };
    let outlets = (parts.outlets)(proxy.map_err(io::Error::other)?);
    Ok(Jail::new(policy).with_outlets(outlets))
}
