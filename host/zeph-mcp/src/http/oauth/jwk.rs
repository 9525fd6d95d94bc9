//! Public keys as JSON (RFC 7517, RFC 7518, RFC 8037).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    self, EcdsaVerificationAlgorithm, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

use super::jwt::{Algorithm, Header};

/// A key of the authorisation server.
#[derive(Debug, Clone)]
pub(super) struct PublicKey {
    id: Option<String>,
    /// The only algorithm it is for, if it says so.
    algorithm: Option<String>,
    material: Material,
}

#[derive(Debug, Clone)]
enum Material {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// The uncompressed point.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

#[derive(Deserialize)]
struct RawSet {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct RawKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// The keys of a set that can check a signature. What is for something else, or not understood, is passed over, as RFC 7517 wants it.
///
/// Errors: it is not a set.
pub(super) fn read_set(json: &[u8]) -> Result<Vec<PublicKey>, serde_json::Error> {
    let set: RawSet = serde_json::from_slice(json)?;
    let keys = set.keys.into_iter().filter_map(PublicKey::read);
    Ok(keys.collect())
}

/// The key that a token names; without a name, the only one there is for its algorithm.
pub(super) fn find<'k>(keys: &'k [PublicKey], header: &Header) -> Option<&'k PublicKey> {
    let mut fitting = keys.iter().filter(|key| key.fits(header.algorithm));
    match &header.key_id {
        Some(id) => fitting.find(|key| key.id.as_ref() == Some(id)),
        None => fitting.next().filter(|_| fitting.next().is_none()),
    }
}

impl PublicKey {
    fn read(json: serde_json::Value) -> Option<Self> {
        let raw: RawKey = serde_json::from_value(json).ok()?;
        let is_for_signatures = raw
            .purpose
            .as_deref()
            .is_none_or(|purpose| purpose == "sig");
        let mut operations = raw.key_ops.iter().flatten();
        let verifies = raw.key_ops.is_none() || operations.any(|name| name == "verify");
        if !is_for_signatures || !verifies {
            return None;
        }
        let material = raw.material()?;
        Some(Self {
            id: raw.kid,
            algorithm: raw.alg,
            material,
        })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        let is_its_own = |own: &String| *own == format!("{algorithm:?}");
        let is_of_kind = match self.material {
            Material::Rsa { .. } => rsa(algorithm).is_some(),
            Material::P256(_) => algorithm == Algorithm::ES256,
            Material::P384(_) => algorithm == Algorithm::ES384,
            Material::Ed25519(_) => algorithm == Algorithm::EdDSA,
        };
        is_of_kind && self.algorithm.as_ref().is_none_or(is_its_own)
    }

    /// Whether `signature` of `message` was made with this key.
    pub(super) fn has_signed(
        &self,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let ecdsa = |curve: &'static EcdsaVerificationAlgorithm, point: &Vec<u8>| {
            UnparsedPublicKey::new(curve, point).verify(message, signature)
        };
        let verified = match (&self.material, rsa(algorithm)) {
            _ if !self.fits(algorithm) => return false,
            (Material::Rsa { n, e }, Some(parameters)) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Material::Rsa { .. }, None) => return false,
            (Material::P256(point), _) => ecdsa(&signature::ECDSA_P256_SHA256_FIXED, point),
            (Material::P384(point), _) => ecdsa(&signature::ECDSA_P384_SHA384_FIXED, point),
            (Material::Ed25519(key), _) => {
                UnparsedPublicKey::new(&signature::ED25519, key).verify(message, signature)
            }
        };
        verified.is_ok()
    }
}

impl RawKey {
    fn material(&self) -> Option<Material> {
        match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => Some(Material::Rsa {
                n: number(self.n.as_ref()?)?,
                e: number(self.e.as_ref()?)?,
            }),
            ("EC", Some("P-256")) => self.point(32).map(Material::P256),
            ("EC", Some("P-384")) => self.point(48).map(Material::P384),
            ("OKP", Some("Ed25519")) => bytes(self.x.as_ref()?).map(Material::Ed25519),
            _ => None,
        }
    }

    /// Both coordinates, each of this many bytes.
    fn point(&self, n_bytes: usize) -> Option<Vec<u8>> {
        let (x, y) = (bytes(self.x.as_ref()?)?, bytes(self.y.as_ref()?)?);
        let is_whole = x.len() == n_bytes && y.len() == n_bytes;
        is_whole.then(|| [&[4], x.as_slice(), y.as_slice()].concat())
    }
}

fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    match algorithm {
        Algorithm::RS256 => Some(&signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Some(&signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Some(&signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Some(&signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Some(&signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Some(&signature::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 | Algorithm::ES384 | Algorithm::EdDSA => None,
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// A number without the zeros some write before it.
fn number(text: &str) -> Option<Vec<u8>> {
    let bytes = bytes(text)?;
    let first = bytes.iter().position(|byte| *byte != 0)?;
    Some(bytes[first..].to_vec())
}
