//! Message types of the Windlass signalling protocol.
