//! The pictures of an enhanced file, from the frames and anchors of a recorded file to AV1.

use windlass_types::Size;
use windlass_types::message::ReassembledAnchor;

use crate::encoder::{EncodeError, Encoder, Packet, Purpose};
use crate::pictures::Pictures;

/// Counters of a [`FileTranscoder`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Number of pictures that were encoded.
    pub pictures: u64,
    /// Number of frames without a picture: they are damaged, or none that they need is there.
    pub missing: u64,
    /// Number of anchors that have a part in the pictures.
    pub anchors: u64,
}

/// Rebuilds and encodes the pictures of one recorded file.
///
/// ```
/// use windlass_transcode::{FileTranscoder, file_picture_size};
/// use windlass_types::Size;
///
/// // The first frame of an IVF file: a low picture of 161 × 91 samples.
/// let ivf = include_bytes!("../../../hybrid/vp9/tests/fixtures/realtime.ivf");
/// let bytes = u32::from_le_bytes(ivf[32..36].try_into()?) as usize;
/// let layer = Size::new(161, 91);
/// let size = file_picture_size([layer], [(layer, layer.scaled(2))]).ok_or("nothing to enhance")?;
/// let mut transcoder = FileTranscoder::new(size)?;
/// let mut packets = Vec::new();
/// transcoder.push(0, &ivf[44..44 + bytes], &[], &mut packets)?;
/// transcoder.flush(&mut packets)?;
/// assert_eq!((packets.len(), packets[0].number, packets[0].key), (1, 0, true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FileTranscoder {
    size: Size,
    pictures: Pictures,
    encoder: Encoder,
    counts: FileCounts,
}

impl FileTranscoder {
    /// Begins pictures of one size.
    ///
    /// # Errors
    ///
    /// Fails if the encoder refuses the size.
    pub fn new(size: Size) -> Result<FileTranscoder, EncodeError> {
        let (pictures, encoder) = (Pictures::new(size), Encoder::new(size, Purpose::File)?);
        Ok(FileTranscoder { size, pictures, encoder, counts: FileCounts::default() })
    }

    /// Header of the AV1 stream, as WebM has it for the track (`CodecPrivate`).
    pub fn header(&self) -> Vec<u8> {
        self.encoder.header()
    }

    /// Takes a frame with all its anchors, whose RTP timestamp is the frame's number. Numbers rise by one. Appends the
    /// packets that are ready: those of earlier frames, in their order. A frame that cannot be decoded has none.
    ///
    /// # Errors
    ///
    /// Fails if the encoder does.
    pub fn push(
        &mut self,
        number: u32,
        data: &[u8],
        anchors: &[ReassembledAnchor],
        packets: &mut Vec<Packet>,
    ) -> Result<(), EncodeError> {
        if let Ok(Some(picture)) = self.pictures.push(number, data, anchors) {
            self.counts.pictures += 1;
            self.encoder.push(number, picture, false, packets)
        } else {
            self.counts.missing += 1;
            Ok(())
        }
    }

    /// Number of pictures whose packets have not come out yet.
    pub fn waiting(&self) -> usize {
        self.encoder.waiting()
    }

    /// Gives out all packets. The next picture is a key frame.
    ///
    /// # Errors
    ///
    /// Fails if the encoder does.
    pub fn flush(&mut self, packets: &mut Vec<Packet>) -> Result<(), EncodeError> {
        let next = Encoder::new(self.size, Purpose::File)?;
        std::mem::replace(&mut self.encoder, next).finish(packets)
    }

    /// The counters so far.
    pub fn counts(&self) -> FileCounts {
        FileCounts { anchors: self.pictures.anchors(), ..self.counts }
    }
}
