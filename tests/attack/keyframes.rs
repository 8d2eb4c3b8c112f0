//! One subscriber that asks for key frames all the time, which spoils the picture for all others.

use std::time::{Duration, Instant};

use crate::honest::Scene;
use crate::viewer::{Viewer, a_room};

const SECONDS: u64 = 6;
/// What was saved of the mean, and the viewer's own beginning, may come to.
const SPARE: f64 = 3.0;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_for_key_frames_all_the_time_gets_one_a_second_at_most() {
    let scene = Scene::open(&[]);
    let mut viewer = Viewer::join(&scene.server, &a_room(&scene.server)).await;
    let figure =
        |name: &str| scene.server.metric(&format!("windlass_sfu_keyframe_requests_{name}_total"));
    let (asked, passed_on) = (figure("in"), figure("out"));
    let end = Instant::now() + Duration::from_secs(SECONDS);
    while Instant::now() < end {
        viewer.ask();
        viewer.watch(Duration::from_millis(20));
    }
    let (asked, passed_on) = (figure("in") - asked, figure("out") - passed_on);
    eprintln!("{asked} requests in {SECONDS} s, of which {passed_on} reached the publisher");
    assert!(asked > 50.0, "{asked} requests");
    assert!(passed_on <= SECONDS as f64 + SPARE, "{passed_on} of {asked}");
    drop(viewer);
    scene.close();
}
