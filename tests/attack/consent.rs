//! Media sent to an address that never asked for it: one forged request, and the real client keeps the session alive.

use std::net::UdpSocket;
use std::time::Duration;

use crate::honest::Scene;
use crate::viewer::{Viewer, a_room};

/// What may be sent on the word of one request; the answer to it comes to this.
const MAX_BYTES: usize = 50_000 + 1_000;

/// Bytes and datagrams that have come.
fn came(socket: &UdpSocket) -> (usize, usize) {
    let mut buffer = [0; 2048];
    let sizes = std::iter::from_fn(|| socket.recv_from(&mut buffer).ok().map(|(size, _)| size));
    sizes.fold((0, 0), |(bytes, count), size| (bytes + size, count + 1))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_never_agreed_is_sent_little() {
    let scene = Scene::open(&[]);
    let mut viewer = Viewer::join(&scene.server, &a_room(&scene.server)).await;
    let victim = viewer.nominate("127.0.0.2");
    let before = viewer.packets;
    viewer.watch(Duration::from_millis(4500));
    let (bytes, datagrams) = came(&victim);
    eprintln!(
        "{datagrams} datagrams, {bytes} bytes to the victim; {} packets to the client",
        viewer.packets - before
    );
    assert!(bytes > 0, "the request was not heard, so nothing is shown by this");
    assert!(bytes <= MAX_BYTES, "{bytes} bytes");
    // And the client is sent to again.
    let before = viewer.packets;
    viewer.watch(Duration::from_secs(1));
    assert!(viewer.packets > before + 10, "{} packets in a second", viewer.packets - before);
    assert_eq!(came(&victim).0, 0, "it was left");
    drop(viewer);
    scene.close();
}
