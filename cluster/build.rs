//! Generates the protocols' types from their definitions. The compiler of definitions is a crate, so no machine needs
//! `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(["proto/enhancer.proto", "proto/relay.proto"], ["proto"])?;
    tonic_prost_build::configure().bytes(".").compile_fds(files)?;
    Ok(())
}
