//! Prints the OpenAPI description, which the server SDKs are made from.

fn main() -> Result<(), serde_json::Error> {
    windlass_signaling::openapi_document().map(|text| print!("{text}"))
}
