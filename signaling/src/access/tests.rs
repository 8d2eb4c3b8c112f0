//! What a token must be, and what it then allows.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const NOW: u64 = 1_800_000_000;
const OLD: &str = "old=0123456789abcdef0123456789abcdef";
const NEW: &str = "new=fedcba9876543210fedcba9876543210";
// Made by `openssl genpkey -algorithm ed25519` for this test.
const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIErSJ9/df983r3NdS8E7UzEBhUbrHNl6zm3bQVsAwcza
-----END PRIVATE KEY-----";
const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEA2X6y1McUMZxrIvc8Q9Rb/+NqwpeScMFClVBaGCP2wpk=
-----END PUBLIC KEY-----";

fn key(text: &str) -> TokenKey {
    text.parse().unwrap()
}

fn access(keys: &[&str]) -> Access {
    Access::new(keys.iter().map(|text| key(text)).collect()).unwrap()
}

fn claims() -> Claims {
    Claims {
        room: "tea".into(),
        sub: "ana".into(),
        name: None,
        grants: Grants::participant(),
        exp: (NOW + 60) as f64,
        nbf: None,
        jti: None,
    }
}

/// A token of any header and claims, signed with the secret of a key as HS256 would be.
fn forge(header: &Value, claims: &Value, of: &str) -> String {
    let part = |value: &Value| BASE64.encode(value.to_string());
    let head = format!("{}.{}", part(header), part(claims));
    let secret = aws_lc_rs::hmac::Key::new(
        aws_lc_rs::hmac::HMAC_SHA256,
        of.split_once('=').unwrap().1.as_bytes(),
    );
    let tag = aws_lc_rs::hmac::sign(&secret, head.as_bytes());
    format!("{head}.{}", BASE64.encode(tag))
}

#[test]
fn without_keys_every_room_is_open_to_everybody() {
    let admission = Access::default().admit(NOW, "tea", None).unwrap();
    assert_eq!(admission, Admission::open());
    assert!(!admission.grants.has(Grant::Admin));
}

#[test]
fn with_keys_a_token_is_needed_and_says_who_one_is() {
    let access = access(&[OLD]);
    assert_eq!(access.admit(NOW, "tea", None), Err(AccessError::Missing));
    let said = Claims { name: Some("Ana".into()), ..claims() };
    let admission = access.admit(NOW, "tea", Some(&key(OLD).sign(&said).unwrap())).unwrap();
    assert_eq!(admission.identity.as_deref(), Some("ana"));
    assert_eq!(admission.name.as_deref(), Some("Ana"));
    assert_eq!(admission.grants.list(), Grant::PARTICIPANT);
}

#[test]
fn old_and_new_keys_are_taken_while_both_are_configured() {
    let (before, during, after) = (access(&[OLD]), access(&[OLD, NEW]), access(&[NEW]));
    let [old, new] = [OLD, NEW].map(|text| key(text).sign(&claims()).unwrap());
    assert!(before.admit(NOW, "tea", Some(&old)).is_ok());
    assert!(during.admit(NOW, "tea", Some(&old)).is_ok());
    assert!(during.admit(NOW, "tea", Some(&new)).is_ok());
    assert!(after.admit(NOW, "tea", Some(&new)).is_ok());
    let error = after.admit(NOW, "tea", Some(&old)).unwrap_err();
    assert!(matches!(error, AccessError::Invalid(why) if why.contains("kid")), "{error}");
}

#[test]
fn a_token_that_names_no_key_is_tried_with_each() {
    let claims = serde_json::to_value(claims()).unwrap();
    let token = forge(&json!({"alg": "HS256", "typ": "JWT"}), &claims, NEW);
    assert!(access(&[OLD, NEW]).admit(NOW, "tea", Some(&token)).is_ok());
    assert!(access(&[OLD]).admit(NOW, "tea", Some(&token)).is_err());
}

#[test]
fn a_token_is_good_from_nbf_to_exp_and_for_a_little_leeway() {
    let access = access(&[OLD]);
    let timed = Claims { nbf: Some((NOW - 60) as f64), ..claims() };
    let token = key(OLD).sign(&timed).unwrap();
    let at = |now| access.admit(now, "tea", Some(&token)).map(|_| ());
    assert_eq!(at(NOW - 60 - LEEWAY_S - 1), Err(AccessError::Early));
    assert_eq!(at(NOW - 60 - LEEWAY_S), Ok(()));
    assert_eq!(at(NOW + 60 + LEEWAY_S - 1), Ok(()));
    assert_eq!(at(NOW + 60 + LEEWAY_S), Err(AccessError::Expired));
}

#[test]
fn a_token_is_for_its_room_or_for_all() {
    let access = access(&[OLD]);
    let token = key(OLD).sign(&claims()).unwrap();
    assert_eq!(access.admit(NOW, "coffee", Some(&token)), Err(AccessError::OtherRoom));
    let all = key(OLD).sign(&Claims { room: ALL_ROOMS.into(), ..claims() }).unwrap();
    assert!(access.admit(NOW, "coffee", Some(&all)).is_ok());
}

#[test]
fn administering_needs_the_grant_and_the_server_a_token_for_all_rooms() {
    let access = access(&[OLD]);
    let sign = |room: &str, grants: &[Grant]| {
        let grants = Grants::new(grants.iter().copied());
        key(OLD).sign(&Claims { room: room.into(), grants, ..claims() }).unwrap()
    };
    let host = sign("tea", &[Grant::Admin]);
    assert_eq!(access.admin(NOW, Some("tea"), Some(&host)), Ok(()));
    assert_eq!(access.admin(NOW, Some("coffee"), Some(&host)), Err(AccessError::OtherRoom));
    assert_eq!(access.admin(NOW, None, Some(&host)), Err(AccessError::OtherRoom));
    let guest = sign("*", &Grant::PARTICIPANT);
    let error = access.admin(NOW, None, Some(&guest));
    assert_eq!(error, Err(AccessError::NotGranted(Grant::Admin)));
    assert_eq!(access.admin(NOW, None, Some(&sign("*", &[Grant::Admin]))), Ok(()));
}

#[test]
fn whatever_is_not_signed_by_a_key_for_its_algorithm_is_refused() {
    let access = access(&[OLD]);
    let claims = serde_json::to_value(claims()).unwrap();
    let good = forge(&json!({"alg": "HS256", "kid": "old"}), &claims, OLD);
    assert!(access.admit(NOW, "tea", Some(&good)).is_ok());
    let (head, tag) = good.rsplit_once('.').unwrap();
    let (header, _) = head.split_once('.').unwrap();
    let other = BASE64.encode(json!({"room": "*", "sub": "eve", "exp": NOW + 60}).to_string());
    let none = BASE64.encode(json!({"alg": "none", "kid": "old"}).to_string());
    let body = BASE64.encode(claims.to_string());
    for bad in [
        String::new(),
        ".".repeat(5),
        "é.é.é".into(),
        format!("{none}.{body}."),
        format!("{none}.{body}.{tag}"),
        format!("{head}."),
        format!("{header}.{other}.{tag}"),
        format!("{head}.{}", BASE64.encode([0; 32])),
        forge(&json!({"alg": "HS256", "kid": "old"}), &claims, NEW),
        forge(&json!({"alg": "HS256", "kid": "new"}), &claims, OLD),
        forge(&json!({"alg": "HS512", "kid": "old"}), &claims, OLD),
        forge(&json!({"alg": "EdDSA", "kid": "old"}), &claims, OLD),
        forge(&json!({"alg": "HS256", "kid": "old", "crit": ["x"]}), &claims, OLD),
    ] {
        let refused = access.admit(NOW, "tea", Some(&bad));
        assert!(matches!(refused, Err(AccessError::Invalid(_))), "{bad}: {refused:?}");
    }
}

#[test]
fn claims_that_are_missing_or_out_of_bounds_are_refused() {
    let access = access(&[OLD]);
    let header = json!({"alg": "HS256", "kid": "old"});
    let full = serde_json::to_value(claims()).unwrap();
    let with = |field: &str, value: Value| {
        let mut claims = full.clone();
        claims[field] = value;
        claims
    };
    for field in ["room", "sub", "exp"] {
        let mut claims = full.clone();
        claims.as_object_mut().unwrap().remove(field);
        let refused = access.admit(NOW, "tea", Some(&forge(&header, &claims, OLD)));
        assert!(matches!(refused, Err(AccessError::Invalid(_))), "{field}: {refused:?}");
    }
    for claims in [
        with("sub", json!("")),
        with("sub", json!("x".repeat(200))),
        with("sub", json!("a\nb")),
        with("name", json!("\u{202e}eve")),
        with("grants", json!(["fly"])),
        with("exp", json!("soon")),
        with("aud", json!("another-service")),
    ] {
        let refused = access.admit(NOW, "tea", Some(&forge(&header, &claims, OLD)));
        assert!(matches!(refused, Err(AccessError::Invalid(_))), "{claims}: {refused:?}");
    }
}

#[test]
fn ed25519_keys_are_checked_by_their_public_half() {
    let dir = std::env::temp_dir().join(format!("windlass-keys-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        format!("ed=@{}", path.display())
    };
    let (private, public) = (file("private.pem", PRIVATE), file("public.pem", PUBLIC));
    let garbage = file("garbage.pem", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----");
    let token = key(&private).sign(&claims()).unwrap();
    let by_both = access(&[OLD, &public]);
    assert!(by_both.admit(NOW, "tea", Some(&token)).is_ok());
    let by_secret = key(OLD).sign(&claims()).unwrap();
    assert!(by_both.admit(NOW, "tea", Some(&by_secret)).is_ok());
    // The public half as a secret: the oldest of tricks.
    let header = json!({"alg": "HS256", "kid": "ed"});
    let forged = forge(&header, &serde_json::to_value(claims()).unwrap(), &format!("ed={PUBLIC}"));
    assert!(by_both.admit(NOW, "tea", Some(&forged)).is_err());
    assert_eq!(key(&public).sign(&claims()), Err(BadKey::Public("ed".into())));
    let refused = |text: &str| Access::new(vec![key(text)]).unwrap_err();
    assert_eq!(refused(&private), BadKey::Private("ed".into()));
    assert_eq!(refused(&garbage), BadKey::Pem("ed".into()));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn keys_that_would_be_weak_or_ambiguous_are_refused_and_never_shown() {
    let parse = |text: &str| text.parse::<TokenKey>().unwrap_err();
    assert_eq!(parse("secret"), BadKey::Form);
    assert_eq!(parse("a b=0123456789abcdef0123456789abcdef"), BadKey::Form);
    assert_eq!(parse("a=hunter2"), BadKey::Short("a".into()));
    assert!(matches!(parse("a=@/no/such/file"), BadKey::File { .. }));
    assert_eq!(Access::new(vec![key(OLD); 2]).unwrap_err(), BadKey::Twice("old".into()));
    assert_eq!(Access::new(vec![key(OLD); 17]).unwrap_err(), BadKey::Many(17));
    let shown = format!("{:?} {:?}", key(OLD), access(&[OLD]));
    assert!(shown.contains("old") && !shown.contains("0123"), "{shown}");
    assert!(!parse("a=hunter2").to_string().contains("hunter2"));
}

proptest! {
    #[test]
    fn no_text_is_a_token_and_none_ends_the_check(text in ".{0,200}") {
        prop_assert!(access(&[OLD, NEW]).admit(NOW, "tea", Some(&text)).is_err());
    }

    #[test]
    fn no_token_survives_a_changed_character(at in 0usize..200, to in "[A-Za-z0-9_-]") {
        let token = key(OLD).sign(&claims()).unwrap();
        let at = at % token.len();
        // The last character of a part has bits that are not looked at.
        let ends_part = token[at + 1..].is_empty() || token[at + 1..].starts_with('.');
        prop_assume!(!ends_part && token[at..=at] != to && &token[at..=at] != ".");
        let changed = format!("{}{to}{}", &token[..at], &token[at + 1..]);
        prop_assert!(access(&[OLD]).admit(NOW, "tea", Some(&changed)).is_err());
    }
}
