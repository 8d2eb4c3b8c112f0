//! WebSocket signalling for Windlass rooms.
