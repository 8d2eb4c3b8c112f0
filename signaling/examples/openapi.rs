//! Prints the OpenAPI description. The server SDKs are made from it.

fn main() -> Result<(), serde_json::Error> {
    windlass_signaling::openapi_document().map(|text| print!("{text}"))
}
