use std::collections::HashMap;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tonic::transport::Server;
use windlass_types::NodeId;

use super::*;
use crate::proto::relay::relay_server::RelayServer;
use crate::relay::links::{LinkEvent, LinkService, Links, LinksConfig};

/// An authority, and a folder for what it signs.
struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let own = params.self_signed(&key).unwrap();
        std::fs::write(folder.path().join("ca.pem"), own.pem()).unwrap();
        Authority { folder, issuer: Issuer::new(params, key) }
    }

    /// Files of a machine, with a certificate for a name.
    fn sign(&self, machine: &str, name: &str) -> Files {
        let at = |end: &str| self.folder.path().join(format!("{machine}.{end}"));
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let own = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(at("pem"), own.pem()).unwrap();
        std::fs::write(at("key"), key.serialize_pem()).unwrap();
        let ca = self.folder.path().join("ca.pem");
        Files { ca, certificate: at("pem"), key: at("key") }
    }

    fn load(&self, machine: &str, role: Role) -> Mutual {
        Mutual::load(&self.sign(machine, role.name()), role).unwrap()
    }
}

fn links(me: u64, tls: Mutual) -> (Links, mpsc::Receiver<LinkEvent>) {
    let (sender, events) = mpsc::channel(16);
    (
        Links::new(&LinksConfig { me: NodeId(me), token: None, tls: Some(tls) }, sender).unwrap(),
        events,
    )
}

/// A server that others may link to; its address.
async fn serves(me: u64, tls: &Mutual) -> (Arc<str>, mpsc::Receiver<LinkEvent>) {
    let (links, events) = links(me, tls.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap()).into();
    let router = Server::builder().add_service(RelayServer::new(LinkService(links)));
    tokio::spawn(router.serve_with_incoming(tls.incoming(listener, Role::Server)));
    (address, events)
}

/// Whether there is a link soon from a machine to that address.
async fn comes_about(me: u64, tls: Mutual, to: (u64, &Arc<str>)) -> bool {
    let (links, mut events) = links(me, tls);
    links.set_targets(&HashMap::from([(NodeId(to.0), to.1.clone())]));
    matches!(timeout(Duration::from_secs(2), events.recv()).await, Ok(Some(LinkEvent::Up(_))))
}

#[tokio::test]
async fn servers_link_and_neither_an_enhancer_nor_anothers_server_does() {
    let authority = Authority::new();
    let own = authority.load("own", Role::Server);
    let (address, _events) = serves(9, &own).await;
    assert!(comes_about(1, authority.load("peer", Role::Server), (9, &address)).await);
    // Whoever has taken an enhancer over has its certificate.
    assert!(!comes_about(2, authority.load("worker", Role::Enhancer), (9, &address)).await);
    let other = Authority::new();
    assert!(!comes_about(3, other.load("stranger", Role::Server), (9, &address)).await);
    assert!(own.refused() >= 2);
}

#[tokio::test]
async fn nobody_links_to_an_enhancer_that_passes_for_a_server() {
    let authority = Authority::new();
    let (address, _events) = serves(9, &authority.load("worker", Role::Enhancer)).await;
    assert!(!comes_about(1, authority.load("own", Role::Server), (9, &address)).await);
}

#[tokio::test]
async fn certificates_that_are_replaced_hold_for_the_next_connection_without_a_restart() {
    let authority = Authority::new();
    let own = authority.load("own", Role::Server);
    let (address, _events) = serves(9, &own).await;
    // The authority is replaced, and all that it has signed.
    let next = Authority::new();
    let files = next.sign("own", Role::Server.name());
    for (new, old) in files.all().into_iter().zip(own.0.files.all()) {
        std::fs::copy(new, old).unwrap();
    }
    assert!(!comes_about(1, next.load("peer", Role::Server), (9, &address)).await);
    own.reload().unwrap();
    assert_eq!(own.generation(), 1);
    assert!(comes_about(2, next.load("peer", Role::Server), (9, &address)).await);
}

#[test]
fn what_cannot_be_used_is_named_and_leaves_what_was() {
    let authority = Authority::new();
    let own = authority.load("own", Role::Server);
    std::fs::write(&own.0.files.certificate, "x").unwrap();
    let error = own.reload().unwrap_err().to_string();
    assert!(error.contains("own.pem") && error.contains("BEGIN CERTIFICATE"), "{error}");
    assert_eq!(own.generation(), 0);
    let files = authority.sign("other", "sfu-1.example.org");
    let error = Mutual::load(&files, Role::Server).err().unwrap().to_string();
    assert!(error.contains("windlass-sfu") && error.contains("subjectAltName"), "{error}");
}
