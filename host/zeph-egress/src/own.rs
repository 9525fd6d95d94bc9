//! The host's own requests: to the hosts of URLs that the operator wrote down, and nowhere else.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use url::Url;
use zeph_core::network::PrivateHost;

use crate::client::Egress;
use crate::dial::{DialError, Dialer};
use crate::error::EgressError;
use crate::request::{Origin, origin_of};
use crate::tls::Tls;

/// Fetches from the hosts it was made for, with the checks of every other request. No redirect is followed, and no proxy is used.
#[derive(Debug, Clone)]
pub struct OwnClient {
    origins: Arc<[Origin]>,
    dialer: Dialer,
    tls: Tls,
    limits: OwnLimits,
}

/// What bounds a request of the host.
#[derive(Debug, Clone, Copy)]
pub struct OwnLimits {
    /// The whole of it.
    pub time: Duration,
    /// Bytes of the body.
    pub bytes: usize,
}

/// Why a request of the host got no answer.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// The text is no URL of a host.
    #[error("`{url}` cannot be fetched: {why}")]
    Url {
        /// What was to be fetched.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// Resolving, or what its addresses are.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The certificates to trust.
    #[error(transparent)]
    Trust(#[from] EgressError),
    /// Connecting or the protocol.
    #[error("the request failed")]
    Http(#[from] reqwest::Error),
    /// The server says no.
    #[error("the answer has status {0}")]
    Status(u16),
    /// The body is too large.
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
}

impl OwnClient {
    /// One for the hosts and ports of `urls`. The operator named them, so that they may be private.
    ///
    /// Errors: `Url`.
    pub fn new(egress: &Egress, urls: &[&str], limits: OwnLimits) -> Result<Self, OwnError> {
        let origins = urls.iter().map(|url| Ok(read(url)?.1));
        let origins: Vec<Origin> = origins.collect::<Result<_, OwnError>>()?;
        let private = origins.iter().map(|origin| PrivateHost {
            host: origin.destination.host.clone(),
            ports: vec![origin.destination.port],
            plain_http: origin.is_plain,
        });
        Ok(Self {
            dialer: egress.dialer().clone().opening(private.collect()),
            origins: origins.into(),
            tls: egress.tls().clone(),
            limits,
        })
    }

    /// The body of the answer, which has the status 200.
    ///
    /// Errors: [`OwnError`]; `Url` for a host it was not made for, and for plain HTTP that would leave this machine.
    pub async fn get(&self, url: &str) -> Result<Bytes, OwnError> {
        let (parsed, origin) = read(url)?;
        let refused = |why: &str| OwnError::Url {
            url: url.to_owned(),
            why: why.to_owned(),
        };
        if !self.origins.contains(&origin) {
            return Err(refused("the operator named another host"));
        }
        let checked = self.dialer.check(&origin.destination).await?;
        if origin.is_plain && !checked.addresses().iter().all(IpAddr::is_loopback) {
            return Err(refused("plain HTTP is spoken with this machine only"));
        }
        let pinned = Pinned {
            name: origin.destination.host.to_string(),
            addresses: checked.addresses().into(),
        };
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(Policy::none())
            .http1_only()
            .tls_backend_preconfigured((*self.tls.config().await?).clone())
            .dns_resolver(Arc::new(pinned))
            .timeout(self.limits.time)
            .user_agent("zeph-host")
            .build()?;
        self.body(
            client
                .get(parsed)
                .header("accept", "application/json")
                .send()
                .await?,
        )
        .await
    }

    async fn body(&self, mut response: reqwest::Response) -> Result<Bytes, OwnError> {
        let status = response.status().as_u16();
        if status != 200 {
            return Err(OwnError::Status(status));
        }
        let mut body = BytesMut::new();
        while let Some(piece) = response.chunk().await? {
            if body.len() + piece.len() > self.limits.bytes {
                return Err(OwnError::TooLarge(self.limits.bytes));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.freeze())
    }
}

/// Errors: `Url`.
fn read(url: &str) -> Result<(Url, Origin), OwnError> {
    let bad = |why: String| OwnError::Url {
        url: url.to_owned(),
        why,
    };
    let parsed = Url::parse(url).map_err(|error| bad(error.to_string()))?;
    let origin = origin_of(&parsed).map_err(bad)?;
    Ok((parsed, origin))
}

/// Answers for one name, with the addresses that were checked. Literal addresses do not pass through a resolver; they were checked too.
#[derive(Debug)]
struct Pinned {
    name: String,
    addresses: Vec<IpAddr>,
}

impl Resolve for Pinned {
    fn resolve(&self, name: Name) -> Resolving {
        let is_its_own = name.as_str().trim_end_matches('.') == self.name;
        let addresses = self.addresses.clone();
        Box::pin(async move {
            if !is_its_own {
                return Err(io::Error::other("another name than the one that was checked").into());
            }
            let addresses = addresses
                .into_iter()
                .map(|address| SocketAddr::new(address, 0));
            let addresses: Addrs = Box::new(addresses);
            Ok(addresses)
        })
    }
}
