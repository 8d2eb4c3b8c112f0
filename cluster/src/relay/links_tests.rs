use std::net::SocketAddr;

use tokio_stream::wrappers::TcpListenerStream;

use super::*;
use crate::proto::relay::message::What;
use crate::proto::relay::relay_server::RelayServer;
use crate::proto::relay::{Muted, Nothing, Packet};

struct Node {
    links: Links,
    events: Receiver<LinkEvent>,
    address: Arc<str>,
    server: tokio::task::JoinHandle<()>,
}

async fn node(me: u64) -> Node {
    node_at(me, "127.0.0.1:0".parse().unwrap(), 64).await
}

async fn node_at(me: u64, at: SocketAddr, room: usize) -> Node {
    let (sender, events) = mpsc::channel(room);
    let links =
        Links::new(&LinksConfig { me: NodeId(me), token: None, tls: None }, sender).unwrap();
    let listener = tokio::net::TcpListener::bind(at).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap()).into();
    let service = RelayServer::new(LinkService(links.clone()));
    let serving =
        server().add_service(service).serve_with_incoming(TcpListenerStream::new(listener));
    let server = tokio::spawn(async move {
        let _ = serving.await;
    });
    Node { links, events, address, server }
}

impl Node {
    fn want(&self, others: &[(u64, &Node)]) {
        let others = others.iter().map(|(name, node)| (NodeId(*name), node.address.clone()));
        self.links.set_targets(&others.collect());
    }

    async fn event(&mut self) -> LinkEvent {
        timeout(Duration::from_secs(5), self.events.recv())
            .await
            .expect("in time")
            .expect("an event")
    }
}

fn begin(room: &str) -> Message {
    Message { room: room.to_owned(), what: Some(What::Begin(Nothing {})) }
}

fn packet(number: u64) -> Message {
    let payload = vec![7; 1_000].into();
    let packet = Packet { track: number, payload, ..Packet::default() };
    Message { room: "room".to_owned(), what: Some(What::Packet(packet)) }
}

#[tokio::test]
async fn the_smaller_name_dials_and_both_are_heard() {
    let (mut small, mut large) = (node(3).await, node(9).await);
    large.want(&[(3, &small)]);
    small.want(&[(9, &large)]);
    assert!(matches!(small.event().await, LinkEvent::Up(NodeId(9))));
    assert!(matches!(large.event().await, LinkEvent::Up(NodeId(3))));
    small.links.send(NodeId(9), begin("a"), false);
    large.links.send(NodeId(3), begin("b"), false);
    assert!(
        matches!(large.event().await, LinkEvent::Message(NodeId(3), said) if said == begin("a"))
    );
    assert!(
        matches!(small.event().await, LinkEvent::Message(NodeId(9), said) if said == begin("b"))
    );
    assert_eq!((small.links.stats().up, large.links.stats().up), (1, 1));
    // Nobody is there.
    small.links.send(NodeId(5), begin("c"), false);
    assert_eq!(small.links.stats().sent, 1);
}

#[tokio::test]
async fn a_link_that_is_not_wanted_any_more_ends_and_comes_again() {
    let (mut small, mut large) = (node(3).await, node(9).await);
    small.want(&[(9, &large)]);
    assert!(matches!(large.event().await, LinkEvent::Up(NodeId(3))));
    small.want(&[]);
    assert!(matches!(large.event().await, LinkEvent::Down(NodeId(3))));
    assert!(matches!(small.event().await, LinkEvent::Up(NodeId(9))));
    assert!(matches!(small.event().await, LinkEvent::Down(NodeId(9))));
    small.want(&[(9, &large)]);
    assert!(matches!(large.event().await, LinkEvent::Up(NodeId(3))));
}

#[tokio::test]
async fn a_node_that_is_started_anew_is_linked_anew() {
    let (mut small, large) = (node(3).await, node(9).await);
    small.want(&[(9, &large)]);
    assert!(matches!(small.event().await, LinkEvent::Up(NodeId(9))));
    let at = large.address.strip_prefix("http://").unwrap().parse().unwrap();
    large.server.abort();
    drop(large);
    // It takes nothing any more.
    small.links.send(NodeId(9), begin("a"), false);
    assert!(matches!(small.event().await, LinkEvent::Down(NodeId(9))));
    let mut large = node_at(9, at, 64).await;
    assert!(matches!(large.event().await, LinkEvent::Up(NodeId(3))));
    assert!(matches!(small.event().await, LinkEvent::Up(NodeId(9))));
}

#[tokio::test]
async fn media_gives_way_to_the_rest_and_nobody_waits() {
    let small = node(3).await;
    // One who takes nothing.
    let large = node_at(9, "127.0.0.1:0".parse().unwrap(), 1).await;
    let mut small = small;
    small.want(&[(9, &large)]);
    assert!(matches!(small.event().await, LinkEvent::Up(NodeId(9))));
    let begun = Instant::now();
    for number in 0..40_000 {
        small.links.send(NodeId(9), packet(number), true);
        if number % 1_000 == 0 {
            tokio::task::yield_now().await;
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(5));
    let stats = small.links.stats();
    assert!(stats.dropped > 1_000 && stats.overflowed == 0, "{stats:?}");
    assert_eq!(stats.sent + stats.dropped, 40_000);
    let muted = Muted { track: 1, muted: true };
    let muted = Message { room: "room".to_owned(), what: Some(What::TrackMuted(muted)) };
    for _ in 0..RESERVED / 2 {
        small.links.send(NodeId(9), muted.clone(), false);
    }
    assert_eq!(small.links.stats().overflowed, 0, "there is room for what must not be lost");
    for _ in 0..QUEUE {
        small.links.send(NodeId(9), muted.clone(), false);
    }
    assert_eq!(small.links.stats().overflowed, 1);
    assert!(matches!(small.event().await, LinkEvent::Down(NodeId(9))));
}

#[tokio::test]
async fn who_does_not_say_its_name_or_has_the_larger_one_is_refused() {
    let large = node(9).await;
    for name in [None, Some("9"), Some("a"), Some("rubbish")] {
        let endpoint = Endpoint::from_shared(large.address.to_string()).unwrap();
        let mut client = RelayClient::new(endpoint.connect().await.unwrap());
        let mut request = Request::new(tokio_stream::empty::<Message>());
        if let Some(name) = name {
            request.metadata_mut().insert(NODE_HEADER, name.parse().unwrap());
        }
        let refused = client.link(request).await.expect_err("refused");
        assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{name:?}");
    }
}
