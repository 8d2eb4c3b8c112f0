//! Prints the messages as TypeScript.

fn main() {
    print!("{}", windlass_protocol::typescript::file());
}
