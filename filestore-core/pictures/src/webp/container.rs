//! Finds the chunks of a still picture in a file (RFC 9649, section 2).

/// The bytes before the first chunk.
const RIFF_BYTES: usize = 12;
/// The bytes before a chunk's payload: its kind and its length.
const CHUNK_BYTES: usize = 8;

/// The payloads of a file's chunks. If a chunk is truncated, its payload is shorter.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Chunks<'a> {
    /// The VP8 bitstream.
    pub(super) lossy: Option<&'a [u8]>,
    /// The VP8L bitstream.
    pub(super) lossless: Option<&'a [u8]>,
    /// The feature flags of the file, if present.
    pub(super) features: Option<u8>,
    /// The alpha plane of the lossy picture.
    pub(super) alpha: Option<&'a [u8]>,
    /// The ICC profile.
    pub(super) profile: Option<&'a [u8]>,
}

impl<'a> Chunks<'a> {
    /// Lists the chunks up to the picture. Uses the first chunk of each kind.
    pub(super) fn of(file: &'a [u8]) -> Self {
        let mut chunks = Self::default();
        let mut rest = file.get(RIFF_BYTES..).unwrap_or_default();

        while let Some((header, payload)) = rest.split_first_chunk::<CHUNK_BYTES>() {
            let [k0, k1, k2, k3, lengths @ ..] = *header;
            let length = u32::from_le_bytes(lengths) as usize;
            let (payload, later) = payload.split_at_checked(length).unwrap_or((payload, &[]));
            match &[k0, k1, k2, k3] {
                b"VP8 " => {
                    chunks.lossy = Some(payload);
                    break;
                }
                b"VP8L" => {
                    chunks.lossless = Some(payload);
                    break;
                }
                b"VP8X" => chunks.features = chunks.features.or(payload.first().copied()),
                b"ALPH" => chunks.alpha = chunks.alpha.or(Some(payload)),
                b"ICCP" => chunks.profile = chunks.profile.or(Some(payload)),
                _ => {}
            }
            // Chunks are filled up to an even length.
            rest = later.get(length % 2..).unwrap_or_default();
        }
        chunks
    }
}
