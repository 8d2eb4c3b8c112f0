//! The few messages of ONNX that a network of convolutions needs, in the wire format of protocol buffers.
//!
//! Source: `onnx.proto` of ONNX 1.12 (opset 17); field numbers are its.

/// A message of protocol buffers, written field by field.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Adds an integer field.
    #[must_use]
    pub(crate) fn int(mut self, field: u64, value: i64) -> Self {
        self.varint(field << 3);
        self.varint(value as u64);
        self
    }

    /// Adds a field of bytes.
    #[must_use]
    pub(crate) fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// Adds a text field.
    #[must_use]
    pub(crate) fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    /// Adds a field that is a message.
    #[must_use]
    pub(crate) fn message(self, field: u64, value: &Message) -> Self {
        self.bytes(field, &value.0)
    }

    /// The encoded message.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// The type of a tensor's numbers: `TensorProto.DataType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    /// 32 bits, floating.
    Float = 1,
    /// 8 bits from 0.
    Uint8 = 2,
    /// 8 bits with sign.
    Int8 = 3,
    /// 32 bits with sign.
    Int32 = 6,
}

/// `TensorProto`: a constant. An empty shape is that of a single number.
pub(crate) fn tensor(name: &str, number: Number, shape: &[usize], little_endian: &[u8]) -> Message {
    let message = shape.iter().fold(Message::default(), |m, side| m.int(1, *side as i64));
    message.int(2, number as i64).text(8, name).bytes(9, little_endian)
}

/// `ValueInfoProto`: an input or output of floats with its shape.
pub(crate) fn shaped(name: &str, shape: &[usize]) -> Message {
    let dimension = |side: &usize| Message::default().int(1, *side as i64);
    let shape = shape.iter().fold(Message::default(), |m, side| m.message(1, &dimension(side)));
    let tensor = Message::default().int(1, Number::Float as i64).message(2, &shape);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}

/// `NodeProto`: an operator without attributes, named after its output.
pub(crate) fn node(operator: &str, inputs: &[&str], output: &str) -> Message {
    let node = inputs.iter().fold(Message::default(), |m, input| m.text(1, input));
    node.text(2, output).text(3, output).text(4, operator)
}

/// Adds an attribute of one number to a node.
pub(crate) fn with_int(node: Message, name: &str, value: i64) -> Message {
    node.message(5, &Message::default().text(1, name).int(3, value).int(20, 2))
}

/// Adds an attribute of text to a node.
pub(crate) fn with_text(node: Message, name: &str, value: &str) -> Message {
    node.message(5, &Message::default().text(1, name).text(4, value).int(20, 3))
}

/// Adds an attribute of several numbers to a node.
pub(crate) fn with_ints(node: Message, name: &str, values: &[i64]) -> Message {
    let named = Message::default().text(1, name);
    let attribute = values.iter().fold(named, |m, value| m.int(8, *value));
    node.message(5, &attribute.int(20, 7))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_written_as_protocol_buffers_are() {
        let message = Message::default().int(1, 150).text(2, "testing");
        let expected = [&[0x08, 0x96, 0x01, 0x12, 0x07][..], b"testing"].concat();
        assert_eq!(message.into_bytes(), expected);
        assert_eq!(Message::default().int(20, 7).into_bytes(), [0xa0, 0x01, 0x07]);
    }
}
