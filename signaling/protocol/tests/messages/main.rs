//! The shapes of the messages on the wire, and what becomes of texts that have none of them.

mod clients;
mod limits;
mod random;
mod servers;

use serde_json::Value;
use windlass_protocol::{ClientMessage, ErrorCode, ProtocolError, Request, ServerMessage};

fn shape(message: &ServerMessage) -> Value {
    serde_json::from_str(&message.to_json()).unwrap()
}

fn code(text: &str) -> ErrorCode {
    Request::parse(text).unwrap_err().code
}

fn parse(value: &Value) -> Result<Request, ProtocolError> {
    Request::parse(&value.to_string())
}

/// Checks that clients' messages are read from these texts, and written as them.
fn clients_say(cases: impl IntoIterator<Item = (Value, Option<u32>, ClientMessage)>) {
    for (wire, id, message) in cases {
        let request = Request { id, message };
        assert_eq!(parse(&wire).as_ref(), Ok(&request), "{wire}");
        let written: Value = serde_json::from_str(&request.to_json()).unwrap();
        assert_eq!(written, wire);
    }
}

/// Checks that the server's messages are written as these texts, and read from them.
fn servers_say(cases: impl IntoIterator<Item = (ServerMessage, Value)>) {
    for (message, wire) in cases {
        assert_eq!(shape(&message), wire);
        assert_eq!(ServerMessage::parse(&wire.to_string()).unwrap(), message);
    }
}
