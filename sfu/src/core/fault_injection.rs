//! Fault injection for tests, in development builds only.
//!
//! The environment variable `WINDLASS_PLANT` lists faults as `FAULT@ROOM`, each injected once:
//! `offer@tea,packet@salon`. A fault panics in the named step of a connection of the room. `thread@ROOM` ends the
//! room's media thread, `hang@ROOM` blocks it, and `connect@SECONDS` sets the timeout of new connections.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

struct Injection {
    fault: String,
    room: String,
    done: AtomicBool,
}

/// Faults of the environment variable `WINDLASS_PLANT`, read at first use.
static INJECTIONS: LazyLock<Vec<Injection>> = LazyLock::new(|| {
    let list = std::env::var("WINDLASS_PLANT").unwrap_or_default();
    let faults = list.split(',').filter_map(|fault| fault.split_once('@'));
    let injection = |(fault, room): (&str, &str)| Injection {
        fault: fault.to_owned(),
        room: room.to_owned(),
        done: AtomicBool::new(false),
    };
    faults.map(injection).collect()
});

fn is_due(fault: &str, room: &str) -> bool {
    let injection = INJECTIONS.iter().find(|i| i.fault == fault && i.room == room);
    injection.is_some_and(|injection| !injection.done.swap(true, Ordering::Relaxed))
}

/// Panics if this fault is listed for the room, with the room's name in the message.
pub(crate) fn panic(fault: &str, room: &str) {
    assert!(!is_due(fault, room), "planted for {room}");
}

/// Injects the faults of the thread that has these rooms.
pub(crate) fn thread<'a>(rooms: impl Iterator<Item = &'a String>) {
    if INJECTIONS.is_empty() {
        return;
    }
    for room in rooms {
        panic("thread", room);
        while is_due("hang", room) {
            std::thread::sleep(Duration::from_secs(3600));
        }
    }
}

/// Timeout of new connections.
pub(crate) fn connect() -> Option<Duration> {
    let injection = INJECTIONS.iter().find(|injection| injection.fault == "connect")?;
    injection.room.parse().ok().map(Duration::from_secs)
}
