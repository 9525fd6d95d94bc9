//! Tokens that are accepted, and every way to be refused. EC and Ed25519 keys are made here; the RSA key was made once with OpenSSL, which
//! signed the tokens beside it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _,
};
use serde_json::{Value, json};

use super::super::jwk::{find, read_set};
use super::{AccessTokenError, Token};
use crate::http::oauth::Subject;

const ISSUER: &str = "https://id.example.com";
const AUDIENCE: &str = "https://tools.example.com/mcp";
const NOW_MS: i64 = 1_800_000_000_000;
const NOW: i64 = NOW_MS / 1_000;

/// Of a key of 2,048 bits.
const RSA_MODULUS: &str = "mMsxNo4Ryailaph1Q1IxvlFt40EQB0txBUXcowuQbaSVmLXxKHW15kky1V9IKlaUZRk7vn4GmLpBpVQyXWy179ryGLDWIMndP4Gm\
    7drlFEJvVR4cyHfocA-JZLWi-nN734deogeGLGcMQTe4Cpdx2wokt_6RMpR7R0o-5A1slii3NtRyAnsy-kuBbLX9CB27zIHYN2bp\
    -LEg6eZuHeX7Y4gNEF0abTNqhMwRJv5c0JoOrP2c6WRaTL57t3rPT0zn4ValLrUrSPv4kdrFk0vtoUd2AW-dlsDtdf73Wolexngn\
    mQj2wq2zGJqE54R-Wx4vfA2fJmqEZIZBRDiRHiGezQ";

/// RS256.
const RSA_PKCS1: &str = "eyJhbGciOiAiUlMyNTYiLCAia2lkIjogInJzYSIsICJ0eXAiOiAiYXQrand0In0.eyJpc3MiOiAiaHR0cHM6Ly9pZC5leGFtcGxl\
    LmNvbSIsICJhdWQiOiBbImh0dHBzOi8vdG9vbHMuZXhhbXBsZS5jb20vbWNwIl0sICJzdWIiOiAiYWxpY2UiLCAiZXhwIjogNDAw\
    MDAwMDAwMH0.e5u2mBL-TxzKlh5qNq08nij_beOZZEDRhm2R-3G8RVeITMFoFqkr2hkeQMmvCn0QLCSC4iex1DJ0tLEdMKOg_mBt\
    rz6_O0UBg0wktUftIAEjQ2Bv34BUpnufoiBFAUmFV7BtMYgmkF-1cW5C29ijImt5x6LLwxrESHSSzRTOkxvmh0OOgDu9ZD9ilRhB\
    zlVwH5GKrVwnR8dK3rBQT33mafXR-2U0fxq_42mH5TlTrVZcKRELZ5IjsgGxl756HivTA6bbNzvf0xQ_7Rg8FrtCSUj3hPM-nHdJ\
    c1P-fQxs2CeBRrqu574n8vrUMCNYGZVxx41iWACmqmvcg_OSdsCdIw";

/// PS512.
const RSA_PSS: &str = "eyJhbGciOiAiUFM1MTIiLCAia2lkIjogInJzYSIsICJ0eXAiOiAiYXQrand0In0.eyJpc3MiOiAiaHR0cHM6Ly9pZC5leGFtcGxl\
    LmNvbSIsICJhdWQiOiBbImh0dHBzOi8vdG9vbHMuZXhhbXBsZS5jb20vbWNwIl0sICJzdWIiOiAiYWxpY2UiLCAiZXhwIjogNDAw\
    MDAwMDAwMH0.hAJePvZj-YrexmVyBREnbCgvYcrWLqeZTYSY_VHCQM5rraPVc2bkVsAd395wmg5iapY-nouk2iFrmSIZmjqgeYnZ\
    q6J7ERaCgkplUfgBEi0TwUU3lHfe3CtDdRHtsnGqBu3C1-kGuy7ECatPxaI2PKMpJDQ0wJlcPx4sA2clAsbVS0PsotQayn3i5i3T\
    bbHVZpWb7MspYK4n7qSdxuOgrcdzo_Oj9k0iky-6gMvprGz85onYibnzk6LHYq8-h8aXnLTZ84KhYnWnsUTPfI_1ctT1dupijZA0\
    I0GRarP_k_zjPMLOx89-7S42XpPvEcx6HHpPN52d195SMCFnhjTsbw";

/// Signs a text.
type Sign = Box<dyn Fn(&[u8]) -> Vec<u8>>;

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn ecdsa(algorithm: &'static EcdsaSigningAlgorithm, curve: &str) -> (Value, Sign) {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).expect("a key");
    let point = &pair.public_key().as_ref()[1..];
    let (x, y) = point.split_at(point.len() / 2);
    let jwk = json!({
        "kty": "EC", "crv": curve, "kid": curve, "use": "sig",
        "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
    });
    let sign = move |text: &[u8]| {
        let signature = pair.sign(&SystemRandom::new(), text);
        signature.expect("a signature").as_ref().to_vec()
    };
    (jwk, Box::new(sign))
}

fn ed25519() -> (Value, Sign) {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
    let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).expect("a key");
    let x = URL_SAFE_NO_PAD.encode(pair.public_key());
    let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "kid": "Ed25519", "x": x });
    (jwk, Box::new(move |text| pair.sign(text).as_ref().to_vec()))
}

fn signed(header: &Value, claims: &Value, sign: &Sign) -> String {
    let text = format!("{}.{}", encoded(header), encoded(claims));
    let signature = URL_SAFE_NO_PAD.encode(sign(text.as_bytes()));
    format!("{text}.{signature}")
}

fn claims() -> Value {
    json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": NOW + 60 })
}

/// What becomes of a token, with these keys.
fn judged(keys: &[Value], text: &str) -> Result<Subject, AccessTokenError> {
    let keys = read_set(json!({ "keys": keys }).to_string().as_bytes()).expect("a set");
    let token = Token::read(text)?;
    let key = find(&keys, &token.header).ok_or(AccessTokenError::UnknownKey)?;
    let claims = token.verified(key)?;
    claims.check(ISSUER, AUDIENCE, NOW_MS)
}

#[test]
fn every_accepted_algorithm_is_verified() {
    let rsa = json!({ "kty": "RSA", "kid": "rsa", "n": RSA_MODULUS, "e": "AQAB" });
    let alice = format!("oauth:{ISSUER}|alice");
    let caller =
        |judged: Result<Subject, AccessTokenError>| judged.map(|subject| subject.caller_id);
    for text in [RSA_PKCS1, RSA_PSS] {
        assert_eq!(
            caller(judged(std::slice::from_ref(&rsa), text)),
            Ok(alice.clone())
        );
        let other = text.replacen("A", "B", 1);
        assert!(judged(std::slice::from_ref(&rsa), &other).is_err());
    }
    let pairs = [
        ("ES256", ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING, "P-256")),
        ("ES384", ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING, "P-384")),
        ("EdDSA", ed25519()),
    ];
    let keys: Vec<Value> = pairs.iter().map(|(_, (jwk, _))| jwk.clone()).collect();
    for (algorithm, (jwk, sign)) in &pairs {
        let header = json!({ "alg": algorithm, "kid": jwk["kid"] });
        let text = signed(&header, &claims(), sign);
        assert_eq!(
            caller(judged(&keys, &text)),
            Ok(alice.clone()),
            "{algorithm}"
        );
        // A token without a name of a key: there is only one for its algorithm.
        let text = signed(&json!({ "alg": algorithm }), &claims(), sign);
        assert_eq!(
            caller(judged(&keys, &text)),
            Ok(alice.clone()),
            "{algorithm}"
        );
    }
}

#[test]
fn a_token_is_refused_whose_signature_does_not_cover_what_it_says() {
    let (jwk, sign) = ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING, "P-256");
    let (_, other) = ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING, "P-256");
    let header = json!({ "alg": "ES256", "kid": "P-256" });
    let text = signed(&header, &claims(), &sign);
    let (start, signature) = text.rsplit_once('.').expect("a signature");
    let (head, _) = start.split_once('.').expect("claims");
    let mut root = claims();
    root["sub"] = json!("root");
    let keys = [jwk];
    for text in [
        signed(&header, &claims(), &other),
        format!("{head}.{}.{signature}", encoded(&root)),
        format!("{start}."),
        format!("{start}.{}", &signature[..80]),
    ] {
        assert_eq!(
            judged(&keys, &text),
            Err(AccessTokenError::Signature),
            "{text}"
        );
    }
}

#[test]
fn algorithms_are_those_of_the_list_and_of_the_key() {
    let (jwk, sign) = ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING, "P-256");
    let table = [
        ("none", AccessTokenError::Algorithm),
        ("None", AccessTokenError::Algorithm),
        ("HS256", AccessTokenError::Algorithm),
        ("ES256K", AccessTokenError::Algorithm),
        ("", AccessTokenError::Algorithm),
        ("RS256", AccessTokenError::UnknownKey),
        ("EdDSA", AccessTokenError::UnknownKey),
    ];
    for (algorithm, expect) in table {
        let header = json!({ "alg": algorithm, "kid": "P-256" });
        let text = signed(&header, &claims(), &sign);
        assert_eq!(
            judged(std::slice::from_ref(&jwk), &text),
            Err(expect),
            "{algorithm}"
        );
    }
    let header = json!({ "alg": "ES256", "kid": "P-256" });
    let text = signed(&header, &claims(), &sign);
    for (field, value) in [
        ("use", json!("enc")),
        ("key_ops", json!(["sign"])),
        ("alg", json!("ES384")),
    ] {
        let mut other = jwk.clone();
        other[field] = value;
        assert_eq!(
            judged(&[other], &text),
            Err(AccessTokenError::UnknownKey),
            "{field}"
        );
    }
}

#[test]
fn what_a_header_calls_critical_is_not_passed_over() {
    let (jwk, sign) = ed25519();
    for header in [
        json!({ "alg": "EdDSA", "crit": ["exp"], "exp": 1 }),
        json!({ "alg": "EdDSA", "typ": "dpop+jwt" }),
        json!({ "kid": "Ed25519" }),
        json!([]),
    ] {
        let text = signed(&header, &claims(), &sign);
        assert_eq!(
            judged(std::slice::from_ref(&jwk), &text),
            Err(AccessTokenError::Malformed),
            "{header}"
        );
    }
    for text in [
        "",
        ".",
        "..",
        "a.b",
        "a.b.c",
        "e30.e30.e30",
        &"a.".repeat(10_000),
    ] {
        assert_eq!(
            judged(std::slice::from_ref(&jwk), text),
            Err(AccessTokenError::Malformed),
            "{text:.20}"
        );
    }
}

#[test]
fn claims_are_those_of_this_server_now() {
    use AccessTokenError::{Audience, Early, Expired, Issuer, Malformed, Subject};
    let (jwk, sign) = ed25519();
    let table = [
        ("iss", json!("https://id.example.com/"), Some(Issuer)),
        ("iss", Value::Null, Some(Issuer)),
        ("aud", json!("https://tools.example.com"), Some(Audience)),
        ("aud", json!([]), Some(Audience)),
        ("aud", Value::Null, Some(Audience)),
        ("aud", json!(["other", AUDIENCE]), None),
        ("exp", json!(NOW - 10), Some(Expired)),
        ("exp", json!(NOW - 5), None),
        ("exp", Value::Null, Some(Expired)),
        ("exp", json!("2030"), Some(Malformed)),
        ("exp", json!(1e300), None),
        ("exp", json!(-1e300), Some(Expired)),
        ("nbf", json!(NOW + 60), Some(Early)),
        ("nbf", json!(NOW + 5), None),
        ("sub", json!(""), Some(Subject)),
        ("sub", Value::Null, Some(Subject)),
        ("sub", json!("a\nb"), Some(Subject)),
        ("sub", json!("a".repeat(256)), Some(Subject)),
        ("sub", json!("a".repeat(255)), None),
        ("sub", json!(7), Some(Malformed)),
        ("scope", json!("admin"), None),
    ];
    for (claim, value, expect) in table {
        let mut claims = claims();
        claims[claim] = value.clone();
        let text = signed(&json!({ "alg": "EdDSA" }), &claims, &sign);
        assert_eq!(
            judged(std::slice::from_ref(&jwk), &text).err(),
            expect,
            "{claim} {value}"
        );
    }
}

#[test]
fn a_subject_is_never_the_name_of_a_token() {
    let (jwk, sign) = ed25519();
    for subject in ["ci", "alice", "a.b-c_d"] {
        let mut claims = claims();
        claims["sub"] = json!(subject);
        let text = signed(&json!({ "alg": "EdDSA" }), &claims, &sign);
        let caller_id = judged(std::slice::from_ref(&jwk), &text)
            .expect("accepted")
            .caller_id;
        assert!(crate::token::check_name(&caller_id).is_err(), "{caller_id}");
    }
}
