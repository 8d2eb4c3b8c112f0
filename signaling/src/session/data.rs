//! Messages of a client to the others, and changes of its name and attributes.

use std::time::Instant;

use windlass_protocol::{
    Attributes, ErrorCode, Grant, ProtocolError, SendData, ServerMessage, SetAttributes,
};
use windlass_sfu::{DataContent, DataError, DataMessage};

use super::messages::check_rate;
use super::{Action, Phase, Session, not_joined};
use crate::convert;

impl Session {
    pub(super) fn send_data(
        &mut self,
        now: Instant,
        id: Option<u32>,
        send: SendData,
    ) -> Result<(), ProtocolError> {
        self.inside()?;
        self.may(Grant::Data)?;
        let SendData { topic, text, bytes, to, reliable, number } = send;
        let content = match bytes {
            Some(bytes) => DataContent::Bytes(bytes.0.into()),
            None => DataContent::Text(text.unwrap_or_default()),
        };
        check_rate(self.data.take(now), self.config.data, "data messages")?;
        let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
        let allowed = self.data_bytes.take_many(length, now);
        check_rate(allowed, self.config.data_bytes, "bytes of data messages")?;
        // An id that is not valid belongs to no participant of the room.
        let to = to.map(|to| to.iter().filter_map(|id| id.parse().ok()).collect());
        let message = DataMessage { topic, content, reliable, number };
        self.actions.push_back(Action::SendData { id, to, message });
        Ok(())
    }

    /// Takes the answer to [`Action::SendData`].
    pub fn sent(&mut self, id: Option<u32>, result: Result<(), DataError>) {
        match result {
            Ok(()) => self.done(id),
            Err(error) => self.refuse(convert::data_error(error).answering(id)),
        }
    }

    pub(super) fn set_attributes(
        &mut self,
        now: Instant,
        id: Option<u32>,
        change: SetAttributes,
    ) -> Result<(), ProtocolError> {
        self.inside()?;
        self.may(Grant::Data)?;
        check_rate(self.changes.take(now), self.config.changes, "changes of attributes")?;
        let Phase::Inside { attributes, name_is_fixed, .. } = &self.phase else {
            return Err(not_joined());
        };
        if *name_is_fixed && change.name.is_some() {
            let message = "the access token says the participant's name";
            return Err(ProtocolError::new(ErrorCode::Forbidden, message));
        }
        let attributes = change.apply(attributes)?;
        self.actions.push_back(Action::SetAttributes { id, name: change.name, attributes });
        Ok(())
    }

    /// Takes the answer to [`Action::SetAttributes`].
    pub fn changed(&mut self, id: Option<u32>, result: Result<Attributes, DataError>) {
        match result {
            Ok(now) => {
                if let Phase::Inside { attributes, .. } = &mut self.phase {
                    *attributes = now;
                }
                self.done(id);
            }
            Err(error) => self.refuse(convert::data_error(error).answering(id)),
        }
    }

    /// Answers a message that has an id with `done`.
    fn done(&mut self, id: Option<u32>) {
        if id.is_some() {
            self.send(ServerMessage::Done { id });
        }
    }
}
