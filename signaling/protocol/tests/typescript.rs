//! The client's types are the server's.

use std::path::Path;

#[test]
fn the_clients_types_are_those_of_this_crate() {
    let path = Path::new("../../client-web/src/sdk/protocol.gen.ts");
    let written = std::fs::read_to_string(path).unwrap_or_default();
    let made = windlass_protocol::typescript::file();
    assert!(written == made, "{} differs: run `cargo xtask protocol`", path.display());
}
