//! Faults that tests plant: builds for development alone have them, and only where the environment says so.
//!
//! `WINDLASS_PLANT` names them with the room whose connections they befall, each once: `offer@tea,packet@salon`. `thread@ROOM` ends the
//! media thread that has the room, `hang@ROOM` stops it, and `connect@3` is the time in seconds for a connection to come up.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

struct Plant {
    what: String,
    at: String,
    done: AtomicBool,
}

static PLANTS: LazyLock<Vec<Plant>> = LazyLock::new(|| {
    let said = std::env::var("WINDLASS_PLANT").unwrap_or_default();
    let plants = said.split(',').filter_map(|plant| plant.split_once('@'));
    let plant = |(what, at): (&str, &str)| Plant {
        what: what.to_owned(),
        at: at.to_owned(),
        done: AtomicBool::new(false),
    };
    plants.map(plant).collect()
});

fn is_due(what: &str, room: &str) -> bool {
    let plant = PLANTS.iter().find(|p| p.what == what && p.at == room);
    plant.is_some_and(|plant| !plant.done.swap(true, Ordering::Relaxed))
}

/// Panics, with the room's name in the message, where that is planted.
pub fn panic(what: &str, room: &str) {
    assert!(!is_due(what, room), "planted for {room}");
}

/// What befalls the thread that has these rooms.
pub fn thread<'a>(rooms: impl Iterator<Item = &'a String>) {
    if PLANTS.is_empty() {
        return;
    }
    for room in rooms {
        panic("thread", room);
        while is_due("hang", room) {
            std::thread::sleep(Duration::from_secs(3600));
        }
    }
}

/// The time for a connection to come up.
pub fn connect() -> Option<Duration> {
    let plant = PLANTS.iter().find(|plant| plant.what == "connect")?;
    plant.at.parse().ok().map(Duration::from_secs)
}
