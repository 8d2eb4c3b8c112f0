//! The hybrid codec that server and browser share: VP9 block info, anchors, HR reconstruction.
