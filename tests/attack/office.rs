//! No attack: two hundred honest people of one office, behind one address, who join a room within ten seconds. No bound
//! that holds attackers may hurt them.

use crate::server::lab;

use serde_json::Value;

use crate::honest::alone;

#[test]
fn two_hundred_of_one_address_join_a_room_within_ten_seconds() {
    let _alone = alone();
    let ran = lab()
        .args(["loadtest", "--own", "--json", "--publishers", "2", "--per-room", "2"])
        .args(["--subscribers", "198", "--ramp", "9", "--settle", "3", "--seconds", "3"])
        .args(["--clip-seconds", "1", "--no-anchors", "--client-processes", "1"])
        .args(["--forwarded-for", "198.51.100.7", "--", "--device=off"])
        // The only option that such a room needs is its size.
        .args(["--max-participants", "200", "--trusted-proxies", "127.0.0.1"])
        .output()
        .expect("a load test");
    let log = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{log}");
    let report: Value = serde_json::from_slice(&ran.stdout).expect("one JSON object");
    let row = &report["rows"][0];
    assert_eq!(row["failed"], 0, "{log}\n{row}");
    assert_eq!((&row["publishers"], &row["subscribers"]), (&2.into(), &198.into()), "{row}");
    assert_eq!(row["subscriptions"], 2 * 198, "{row}");
    assert!(row["loss_rate"].as_f64() < Some(0.01), "{row}");
    eprintln!("longest gap {} ms, {} frames", row["gap_max_ms"], row["frames"]);
}
